import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.gson.Gson;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.*;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.ranger.authorization.hadoop.config.RangerPluginConfig;
import org.apache.ranger.authz.model.*;
import org.apache.ranger.authz.model.RangerAuthzResult.AccessDecision;
import org.apache.ranger.plugin.model.RangerPolicy;
import org.apache.ranger.plugin.policyengine.*;
import org.apache.ranger.plugin.service.RangerBasePlugin;
import org.apache.ranger.plugin.store.EmbeddedServiceDefsUtil;
import org.apache.ranger.plugin.util.ServicePolicies;

/**
 * Ranger's own policy engine behind the address of its policy decision point, which is in no repository: `RangerEngine PORT SERVICE POLICIES`.
 *
 * Requests and answers are Ranger's classes, and so are the names of resources, the definition of the Hive service and the decision; only the way
 * between them is here. POLICIES is a file with a JSON list of Ranger's policies. A request that Ranger refuses is answered with 400.
 */
public class RangerEngine {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static RangerBasePlugin plugin;

  public static void main(String[] arguments) throws Exception {
    ServicePolicies policies = new ServicePolicies();
    policies.setServiceName(arguments[1]);
    policies.setServiceId(1L);
    policies.setPolicyVersion(1L);
    policies.setServiceDef(EmbeddedServiceDefsUtil.instance().getEmbeddedServiceDef("hive"));
    String text = Files.readString(Path.of(arguments[2]));
    policies.setPolicies(new ArrayList<>(Arrays.asList(new Gson().fromJson(text, RangerPolicy[].class))));
    RangerPluginConfig config = new RangerPluginConfig("hive", arguments[1], "metastore", null, null, new RangerPolicyEngineOptions());
    plugin = new RangerBasePlugin(config);
    plugin.setPolicies(policies);
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 0);
    server.createContext("/authz/v1/authorizeMulti", RangerEngine::answer);
    server.start();
    System.out.println("ready");
  }

  private static void answer(HttpExchange exchange) throws IOException {
    int status = 200;
    byte[] body;
    try {
      body = JSON.writeValueAsBytes(decide(JSON.readValue(exchange.getRequestBody(), RangerMultiAuthzRequest.class)));
    } catch (Exception error) {
      status = 400;
      body = String.valueOf(error).getBytes(StandardCharsets.UTF_8);
    }
    exchange.sendResponseHeaders(status, body.length);
    exchange.getResponseBody().write(body);
    exchange.close();
  }

  private static RangerMultiAuthzResult decide(RangerMultiAuthzRequest request) throws Exception {
    if (!plugin.getServiceName().equals(request.getContext().getServiceName())) throw new IllegalArgumentException("no such service");
    List<RangerAuthzResult> found = new ArrayList<>();
    for (RangerAccessInfo access : request.getAccesses()) found.add(decide(request.getUser(), access));
    return new RangerMultiAuthzResult(request.getRequestId(), found);
  }

  private static RangerAuthzResult decide(RangerUserInfo user, RangerAccessInfo access) throws Exception {
    String[] name = access.getResource().getName().split(":", 2);
    Map<String, Object> elements = new HashMap<>(plugin.getServiceDefHelper().getRrnParser(name[0]).parseToMap(name[1]));
    Map<String, Object> attributes = access.getResource().getAttributes();
    String owner = attributes == null ? null : (String) attributes.get("OWNER");
    AccessDecision decision = AccessDecision.ALLOW;
    for (String permission : access.getPermissions()) {
      if (!permission.equals("_any") && plugin.getServiceDef().getAccessTypes().stream().noneMatch(each -> each.getName().equals(permission))) {
        throw new IllegalArgumentException("the Hive service has no permission " + permission);
      }
      RangerAccessRequestImpl asked = new RangerAccessRequestImpl(
          new RangerAccessResourceImpl(elements, owner), permission, user.getName(), user.getGroups(), user.getRoles());
      RangerAccessResult result = plugin.isAccessAllowed(asked);
      if (!result.getIsAccessDetermined()) decision = AccessDecision.NOT_DETERMINED;
      else if (!result.getIsAllowed()) decision = AccessDecision.DENY;
      if (decision != AccessDecision.ALLOW) break;
    }
    return new RangerAuthzResult(null, decision);
  }
}
