import java.io.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.*;
import org.apache.hadoop.hive.ql.IDriver;
import org.apache.hadoop.hive.ql.metadata.HiveMaterializedViewsRegistry;
import org.apache.hadoop.hive.ql.processors.*;
import org.apache.hadoop.hive.ql.scheduled.ScheduledQueryExecutionService;
import org.apache.hadoop.hive.ql.session.SessionState;
import org.apache.hadoop.hive.ql.txn.compactor.Worker;

/**
 * Runs statements with Hive's engine. Each session has a thread, a configuration, locks and transactions of its own.
 *
 * Standard input: number (int), session (UTF), statement (UTF). Standard output: number (int), whether it failed (boolean),
 * how many lines (int), the lines (UTF): rows with tabs between the columns, or the messages of the error and its causes. A session
 * "NAME@USER" is one of a user of HiveServer2. A
 * statement "!worker" starts a compaction worker, "!executor" what runs scheduled queries, "!compact DATABASE TABLE TYPE [PARTITION]" asks for a compaction.
 */
public class HiveSessions {
  private static final Map<String, ExecutorService> SESSIONS = new HashMap<>();
  private static final AtomicBoolean STOP = new AtomicBoolean();
  private static DataOutputStream answers;

  public static void main(String[] unused) throws Exception {
    answers = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)));
    System.setOut(System.err);
    DataInputStream requests = new DataInputStream(new BufferedInputStream(System.in));
    HiveMaterializedViewsRegistry.get().init();
    answer(0, false, List.of());
    while (true) {
      int number;
      try {
        number = requests.readInt();
      } catch (EOFException end) {
        STOP.set(true);
        Runtime.getRuntime().halt(0);
        return;
      }
      String session = requests.readUTF(), statement = requests.readUTF();
      SESSIONS.computeIfAbsent(session, name -> Executors.newSingleThreadExecutor()).submit(() -> run(number, session, statement));
    }
  }

  private static void run(int number, String session, String statement) {
    try {
      answer(number, false, statement.startsWith("!") ? command(statement.substring(1).split(" ")) : sql(session, statement));
    } catch (Throwable error) {
      error.printStackTrace();
      List<String> messages = new ArrayList<>();
      for (Throwable cause = error; cause != null; cause = cause.getCause()) messages.add(String.valueOf(cause));
      answer(number, true, messages);
    }
  }

  private static List<String> sql(String session, String statement) throws Exception {
    if (SessionState.get() == null) {
      HiveConf own = new HiveConf(HiveSessions.class);
      int at = session.indexOf('@');
      SessionState.start(at < 0 ? new SessionState(own) : new SessionState(own, session.substring(at + 1)));
    }
    HiveConf conf = SessionState.get().getConf();
    String[] words = statement.split("\\s+");
    CommandProcessor processor = CommandProcessorFactory.get(words, conf);
    if (!(processor instanceof IDriver)) {
      processor.run(statement.substring(words[0].length()).trim());
      return List.of();
    }
    try (IDriver driver = (IDriver) processor) {
      driver.run(statement);
      driver.setMaxRows(Integer.MAX_VALUE);
      List<Object> rows = new ArrayList<>();
      driver.getResults(rows);
      List<String> lines = new ArrayList<>();
      for (Object row : rows) lines.add(String.valueOf(row));
      return lines;
    }
  }

  private static List<String> command(String[] words) throws Exception {
    HiveConf conf = new HiveConf(HiveSessions.class);
    if (words[0].equals("worker")) {
      Worker worker = new Worker();
      worker.setConf(conf);
      worker.init(STOP);
      worker.setDaemon(true);
      worker.start();
      return List.of();
    }
    if (words[0].equals("executor")) {
      ScheduledQueryExecutionService.startScheduledQueryExecutorService(conf);
      return List.of();
    }
    CompactionRequest request = new CompactionRequest(words[1], words[2], CompactionType.valueOf(words[3]));
    if (words.length > 4) request.setPartitionname(words[4]);
    try (HiveMetaStoreClient client = new HiveMetaStoreClient(conf)) {
      CompactionResponse found = client.compact2(request);
      return List.of(found.getId() + "\t" + found.getState() + "\t" + found.isAccepted());
    }
  }

  private static synchronized void answer(int number, boolean failed, List<String> lines) {
    try {
      answers.writeInt(number);
      answers.writeBoolean(failed);
      answers.writeInt(lines.size());
      for (String line : lines) answers.writeUTF(line.length() > 20000 ? line.substring(0, 20000) : line);
      answers.flush();
    } catch (IOException gone) {
      Runtime.getRuntime().halt(1);
    }
  }
}
