import java.io.*;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hive.streaming.*;

/**
 * Writes lines into a table with Hive's streaming ingest. Arguments: database, table, transactions of a batch.
 *
 * Standard input, a line each: "begin", "write VALUES" (divided by commas), "commit", "abort", "vanish" (end without a word). Standard output:
 * "done" after each. A keytab comes as the system property `login.keytab` with `login.principal`.
 */
public class Ingest {
  public static void main(String[] arguments) throws Exception {
    PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true);
    System.setOut(System.err);
    HiveConf conf = new HiveConf(Ingest.class);
    UserGroupInformation.setConfiguration(conf);
    if (System.getProperty("login.keytab") != null) {
      UserGroupInformation.loginUserFromKeytab(System.getProperty("login.principal"), System.getProperty("login.keytab"));
    }
    StrictDelimitedInputWriter writer = StrictDelimitedInputWriter.newBuilder().withFieldDelimiter(',').build();
    HiveStreamingConnection connection = HiveStreamingConnection.newBuilder()
        .withDatabase(arguments[0]).withTable(arguments[1]).withAgentInfo("ingest").withRecordWriter(writer)
        .withTransactionBatchSize(Integer.parseInt(arguments[2])).withHiveConf(conf).connect();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    answers.println("done");
    for (String line; (line = lines.readLine()) != null; answers.println("done")) {
      if (line.equals("begin")) connection.beginTransaction();
      else if (line.equals("commit")) connection.commitTransaction();
      else if (line.equals("abort")) connection.abortTransaction();
      else if (line.equals("vanish")) Runtime.getRuntime().halt(9);
      else connection.write(line.substring("write ".length()).getBytes(StandardCharsets.UTF_8));
    }
    connection.close();
  }
}
