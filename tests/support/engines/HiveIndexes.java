import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.api.Index;
import org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat;
import org.apache.hadoop.hive.ql.metadata.Hive;
import org.apache.hadoop.hive.ql.session.SessionState;
import org.apache.hadoop.mapred.TextInputFormat;

/** What Hive 2.3 runs for CREATE INDEX and its like: `HiveIndexes URI SCRATCH` prints one line for each step. */
public class HiveIndexes {
  private static final String HANDLER = "org.apache.hadoop.hive.ql.index.compact.CompactIndexHandler";
  private static final String SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe";

  public static void main(String[] args) throws Exception {
    HiveConf conf = new HiveConf();
    conf.set("hive.metastore.uris", args[0]);
    conf.set("hive.exec.scratchdir", args[1]);
    SessionState.setCurrentSessionState(new SessionState(conf));
    Hive hive = Hive.getWithoutRegisterFns(conf);
    hive.createTable("default.t", Arrays.asList("a", "b"), new ArrayList<>(), TextInputFormat.class, HiveIgnoreKeyTextOutputFormat.class);
    create(hive, "i");
    show("made", hive);
    Index index = hive.getIndex("default", "t", "i");
    index.getParameters().put("base_timestamp", "1");
    hive.alterIndex("default", "t", "i", index);
    System.out.println("altered " + hive.getIndex("default", "t", "i").getParameters().get("base_timestamp"));
    try {
      create(hive, "i");
    } catch (Exception error) {
      System.out.println("refused " + error.getMessage());
    }
    System.out.println("dropped " + hive.dropIndex("default", "t", "i", true, true));
    show("left", hive);
    System.out.println("dropped " + hive.dropIndex("default", "t", "i", false, true));
    try {
      hive.dropIndex("default", "t", "i", true, true);
    } catch (Exception error) {
      System.out.println("refused " + error.getMessage());
    }
    create(hive, "j");
    hive.dropTable("default", "t");
    System.out.println("tables " + hive.getAllTables("default"));
  }

  private static void create(Hive hive, String name) throws Exception {
    hive.createIndex("default.t", name, HANDLER, Arrays.asList("a"), "default.t_" + name, true, TextInputFormat.class.getName(),
        HiveIgnoreKeyTextOutputFormat.class.getName(), SERDE, null, null, new HashMap<>(), new HashMap<>(), new HashMap<>(),
        null, null, null, null, null, "a comment");
  }

  private static void show(String step, Hive hive) throws Exception {
    List<String> found = new ArrayList<>();
    for (Index index : hive.getIndexes("default", "t", (short) -1)) {
      found.add(index.getIndexName() + " of " + index.getOrigTableName() + " in " + index.getIndexTableName());
    }
    System.out.println(step + " " + found + " tables " + hive.getAllTables("default"));
  }
}
