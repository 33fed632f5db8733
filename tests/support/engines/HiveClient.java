import java.io.File;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.Database;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.alias.CredentialProvider;
import org.apache.hadoop.security.alias.CredentialProviderFactory;

/**
 * Hive's own metastore client: `HiveClient CONFIGURATION COMMAND...` prints one line for each command, "error: ..." for one that failed.
 *
 * Commands: databases, create:NAME, owner:NAME, drop:NAME, long:NAME:LENGTH (a database with such a description; its length as it was read),
 * token:OWNER:RENEWER, cancel:TOKEN, renew:TOKEN; of tokens and keys that a server keeps for another one: tokens, addtoken:ID:TOKEN,
 * gettoken:ID, removetoken:ID, keys, addkey:KEY, updatekey:NUMBER:KEY, removekey:NUMBER. A password for PLAIN comes as
 * the system property `plain.password`, a keytab as `login.keytab` with `login.principal`.
 */
public class HiveClient {
  public static void main(String[] args) throws Exception {
    HiveConf conf = new HiveConf();
    conf.addResource(new Path(new File(args[0]).toURI()));
    UserGroupInformation.setConfiguration(conf);
    if (System.getProperty("plain.password") != null) {
      keep(conf, conf.get("hive.metastore.client.plain.username"), System.getProperty("plain.password"));
    }
    if (System.getProperty("login.keytab") != null) {
      UserGroupInformation.loginUserFromKeytab(System.getProperty("login.principal"), System.getProperty("login.keytab"));
    }
    HiveMetaStoreClient client;
    try {
      client = new HiveMetaStoreClient(conf);
    } catch (Throwable error) {
      System.out.println("refused: " + text(error));
      return;
    }
    for (String command : Arrays.asList(args).subList(1, args.length)) {
      try {
        System.out.println(run(client, command.split(":", 3)));
      } catch (Throwable error) {
        System.out.println("error: " + text(error));
      }
    }
    client.close();
  }

  private static String run(HiveMetaStoreClient client, String[] command) throws Exception {
    switch (command[0]) {
      case "databases":
        List<String> names = client.getAllDatabases();
        return String.join(",", names);
      case "create":
        client.createDatabase(new Database(command[1], null, null, null));
        return "created";
      case "owner":
        return client.getDatabase(command[1]).getOwnerName();
      case "drop":
        client.dropDatabase(command[1]);
        return "dropped";
      case "long":
        char[] text = new char[Integer.parseInt(command[2])];
        Arrays.fill(text, 'x');
        client.createDatabase(new Database(command[1], new String(text), null, null));
        return String.valueOf(client.getDatabase(command[1]).getDescription().length());
      case "tokens":
        return String.join(",", client.getAllTokenIdentifiers());
      case "addtoken":
        return String.valueOf(client.addToken(command[1], command[2]));
      case "gettoken":
        return client.getToken(command[1]);
      case "removetoken":
        return String.valueOf(client.removeToken(command[1]));
      case "keys":
        return String.join(",", client.getMasterKeys());
      case "addkey":
        return String.valueOf(client.addMasterKey(command[1]));
      case "updatekey":
        client.updateMasterKey(Integer.parseInt(command[1]), command[2]);
        return "updated";
      case "removekey":
        return String.valueOf(client.removeMasterKey(Integer.parseInt(command[1])));
      case "token":
        return client.getDelegationToken(command[1], command[2]);
      case "renew":
        return String.valueOf(client.renewDelegationToken(command[1]));
      case "cancel":
        client.cancelDelegationToken(command[1]);
        return "cancelled";
      default:
        throw new IllegalArgumentException(command[0]);
    }
  }

  private static void keep(Configuration conf, String name, String password) throws Exception {
    CredentialProvider provider = CredentialProviderFactory.getProviders(conf).get(0);
    if (provider.getCredentialEntry(name) == null) {
      provider.createCredentialEntry(name, password.toCharArray());
      provider.flush();
    }
  }

  private static String text(Throwable error) {
    StringBuilder out = new StringBuilder();
    for (Throwable each = error; each != null; each = each.getCause()) {
      out.append(each.getClass().getSimpleName()).append(' ').append(each.getMessage()).append("; ");
    }
    return out.toString().replace('\n', ' ');
  }
}
