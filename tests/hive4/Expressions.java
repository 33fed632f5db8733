import java.io.*;
import java.lang.reflect.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.ql.exec.*;
import org.apache.hadoop.hive.metastore.api.FieldSchema;
import org.apache.hadoop.hive.ql.optimizer.ppr.PartitionExpressionForMetastore;
import org.apache.hadoop.hive.ql.parse.*;
import org.apache.hadoop.hive.ql.plan.*;
import org.apache.hadoop.hive.ql.session.SessionState;
import org.apache.hadoop.hive.serde2.typeinfo.*;

/**
 * Standard input: lines of three fields, separated by tabs: keys as "name type;name type", an expression of HiveQL, names of partitions
 * separated by bars. Standard output, a line for each: the expression as Hive's client serialises it, in hexadecimal digits, whether a
 * partition is unknown, and the names that Hive's own metastore keeps; or "error" and what Hive says. Runs with Hive 3.1 too, on Java 8.
 */
public class Expressions {
  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
    System.setOut(System.err);
    HiveConf conf = new HiveConf();
    SessionState.start(conf);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null; ) {
      try {
        out.println(answer(line.split("\t", -1)));
      } catch (Throwable error) {
        while (error.getCause() != null) error = error.getCause();
        error.printStackTrace();
        out.println("error\t" + String.valueOf(error).replaceAll("\\s+", " "));
      }
    }
    out.flush();
  }

  private static String answer(String[] fields) throws Exception {
    RowResolver resolver = new RowResolver();
    List<FieldSchema> keys = new ArrayList<>();
    for (String key : fields[0].split(";")) {
      String[] parts = key.split(" ", 2);
      keys.add(new FieldSchema(parts[0], parts[1], ""));
      resolver.put("t", parts[0], new ColumnInfo(parts[0], TypeInfoUtils.getTypeInfoFromTypeString(parts[1]), "t", true));
    }
    ASTNode parsed = condition(tree(fields[1]));
    Class<?> kind = checker().getParameterTypes()[1];
    Object context = kind.getConstructor(RowResolver.class).newInstance(resolver);
    Map<?, ?> found = (Map<?, ?>) checker().invoke(null, parsed, context);
    Object expression = found.get(parsed);
    if (expression == null) throw new IllegalArgumentException(String.valueOf(kind.getMethod("getError").invoke(context)));
    byte[] bytes = serialised(expression);
    List<String> kept = new ArrayList<>(Arrays.asList(fields[2].split("[|]")));
    boolean unknown = new PartitionExpressionForMetastore().filterPartitionsByExpr(keys, bytes, "__HIVE_DEFAULT_PARTITION__", kept);
    StringBuilder digits = new StringBuilder();
    for (byte each : bytes) digits.append(String.format("%02x", each));
    return digits + "\t" + unknown + "\t" + String.join("|", kept);
  }

  private static byte[] serialised(Object expression) throws Exception {
    for (Method each : SerializationUtilities.class.getMethods())
      if (each.getName().equals("serializeObjectWithTypeInformation")) return (byte[]) each.invoke(null, expression);
    for (Method each : SerializationUtilities.class.getMethods())
      if (each.getName().equals("serializeExpressionToKryo")) return (byte[]) each.invoke(null, expression);
    throw new NoSuchMethodException();
  }

  private static ASTNode tree(String condition) throws Exception {
    Object parsed = new ParseDriver().parse("SELECT * FROM t WHERE " + condition);
    return (ASTNode) (parsed instanceof ASTNode ? parsed : parsed.getClass().getMethod("getTree").invoke(parsed));
  }

  private static ASTNode condition(ASTNode node) {
    if (node.getType() == HiveParser.TOK_WHERE) return (ASTNode) node.getChild(0);
    for (int i = 0; i < node.getChildCount(); i++) {
      ASTNode found = condition((ASTNode) node.getChild(i));
      if (found != null) return found;
    }
    return null;
  }

  private static Method checker() throws Exception {
    for (String name : new String[] {"type.ExprNodeTypeCheck", "TypeCheckProcFactory"})
      try {
        for (Method each : Class.forName("org.apache.hadoop.hive.ql.parse." + name).getMethods())
          if (each.getName().equals("genExprNode") && each.getParameterCount() == 2) return each;
      } catch (ClassNotFoundException absent) { }
    throw new NoSuchMethodException();
  }
}
