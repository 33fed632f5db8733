import java.io.*;
import java.lang.reflect.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.hadoop.hive.metastore.messaging.*;

/**
 * Reads notification messages with Hive's own deserializers and tells what each getter returns. It opens no connection.
 *
 * Standard input, for each event: type (UTF), format (UTF), size (int), message; an empty type ends the list. Standard output, for each
 * event: how many lines (int), the lines (UTF), either `getter=value`, or `error` and what was thrown.
 */
public class ReadMessages {
  public static void main(String[] unused) throws Exception {
    DataOutputStream out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)));
    System.setOut(System.err);
    DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
    for (String type; !(type = in.readUTF()).isEmpty(); ) {
      String format = in.readUTF();
      byte[] message = new byte[in.readInt()];
      in.readFully(message);
      List<String> lines;
      try {
        lines = getters(read(deserializer(format), type, new String(message, StandardCharsets.UTF_8)));
      } catch (Throwable error) {
        StringBuilder causes = new StringBuilder("error");
        for (Throwable cause = error; cause != null; cause = cause.getCause()) causes.append(" ").append(cause);
        lines = List.of(causes.toString());
      }
      out.writeInt(lines.size());
      for (String line : lines) out.writeUTF(line);
    }
    out.flush();
  }

  /** Hive 3 knows some types only by the name of a method. */
  static Object read(MessageDeserializer deserializer, String type, String message) throws Exception {
    StringBuilder name = new StringBuilder("get");
    for (String word : type.split("_")) name.append(word.charAt(0)).append(word.substring(1).toLowerCase());
    for (Method method : MessageDeserializer.class.getMethods())
      if (method.getName().contentEquals(name + "Message")) return method.invoke(deserializer, message);
    return deserializer.getEventMessage(type, message);
  }

  /** Hive 4 has one for each format; Hive 3 has one at all. */
  static MessageDeserializer deserializer(String format) throws Exception {
    try {
      Object encoder = MessageFactory.class.getMethod("getInstance", String.class).invoke(null, format);
      return (MessageDeserializer) encoder.getClass().getMethod("getDeserializer").invoke(encoder);
    } catch (NoSuchMethodException old) {
      Class<?> only = Class.forName("org.apache.hadoop.hive.metastore.messaging.json.JSONMessageDeserializer");
      return (MessageDeserializer) only.getConstructor().newInstance();
    }
  }

  static List<String> getters(Object message) throws Exception {
    List<String> lines = new ArrayList<>();
    lines.add("class=" + message.getClass().getSimpleName());
    for (Method method : message.getClass().getMethods()) {
      if (!method.getName().matches("(get|is)[A-Z].*") || method.getParameterCount() > 0 || method.getName().equals("getClass")) continue;
      method.setAccessible(true);
      lines.add(method.getName() + "=" + text(method.invoke(message)));
    }
    return lines;
  }

  static String text(Object value) {
    if (!(value instanceof Iterable)) return String.valueOf(value);
    List<String> items = new ArrayList<>();
    for (Object item : (Iterable<?>) value) items.add(text(item));
    return items.toString();
  }
}
