import java.io.*;
import java.lang.reflect.*;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.jar.*;
import org.apache.thrift.*;
import org.apache.thrift.meta_data.*;
import org.apache.thrift.protocol.*;
import org.apache.thrift.transport.*;

/**
 * Fills every Thrift class of a jar by reflection, sends each one encoded, reads it back as others encoded it again,
 * and says which are no longer equal. It opens no connection.
 *
 * Arguments: the jar, the package, "binary" or "compact". On standard output, for each class: name (UTF), length, bytes;
 * an empty name ends the list. On standard input the same, in the same order. Then, on standard output, lines:
 * the number of classes, and the name of each that came back different.
 */
public class RoundTrip {
  static final int DEPTH = 5;
  static int counter = 0;

  static Object value(Type type, int depth) throws Exception {
    int n = ++counter;
    if (type instanceof ParameterizedType) {
      ParameterizedType p = (ParameterizedType) type;
      Type[] of = p.getActualTypeArguments();
      boolean map = Map.class.isAssignableFrom((Class<?>) p.getRawType());
      Object first = value(of[0], depth + 1);
      if (map) {
        Map<Object, Object> out = new HashMap<>();
        Object second = value(of[1], depth + 1);
        if (first != null && second != null) out.put(first, second);
        return out;
      }
      Collection<Object> out = Set.class.isAssignableFrom((Class<?>) p.getRawType()) ? new HashSet<>() : new ArrayList<>();
      if (first != null) out.add(first);
      Object another = value(of[0], depth + 1);
      if (another != null) out.add(another);
      return out;
    }
    Class<?> c = (Class<?>) type;
    if (c == String.class) return "text-" + n + "-\u00e9\u8868";
    if (c == boolean.class || c == Boolean.class) return n % 2 == 0;
    if (c == byte.class || c == Byte.class) return (byte) n;
    if (c == short.class || c == Short.class) return (short) n;
    if (c == int.class || c == Integer.class) return n * 1001;
    if (c == long.class || c == Long.class) return n * 10000000019L;
    if (c == double.class || c == Double.class) return n / 8.0;
    if (c == ByteBuffer.class) return ByteBuffer.wrap(new byte[] {(byte) n, 0, (byte) 200, (byte) 255});
    if (c == byte[].class) return new byte[] {(byte) n, 0, (byte) 200, (byte) 255};
    if (c.isEnum()) return c.getEnumConstants()[n % c.getEnumConstants().length];
    if (TBase.class.isAssignableFrom(c)) return depth > DEPTH ? null : filled(c, depth);
    throw new IllegalArgumentException("no value for " + type);
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  static TBase filled(Class<?> c, int depth) throws Exception {
    TBase out = (TBase) c.getConstructor().newInstance();
    boolean union = TUnion.class.isAssignableFrom(c);
    Map<TFieldIdEnum, FieldMetaData> fields = (Map) c.getField("metaDataMap").get(null);
    for (Map.Entry<TFieldIdEnum, FieldMetaData> e : fields.entrySet()) {
      Type type = union ? getter(c, e.getKey().getFieldName()) : declared(c, e.getKey().getFieldName());
      boolean required = union || e.getValue().requirementType == TFieldRequirementType.REQUIRED;
      Object v = value(type, required ? Math.min(depth + 1, DEPTH) : depth + 1);
      if (v == null) continue;
      out.setFieldValue(e.getKey(), v);
      if (union) break;
    }
    return out;
  }

  static Type declared(Class<?> c, String name) throws Exception {
    return c.getDeclaredField(name).getGenericType();
  }

  static Type getter(Class<?> c, String name) throws Exception {
    for (Method m : c.getMethods())
      if (m.getParameterCount() == 0 && m.getName().equalsIgnoreCase("get" + name)) return m.getGenericReturnType();
    throw new NoSuchMethodException(c + " " + name);
  }

  static TProtocol protocol(String name, TTransport transport) {
    return name.equals("binary") ? new TBinaryProtocol(transport) : new TCompactProtocol(transport);
  }

  @SuppressWarnings("rawtypes")
  public static void main(String[] a) throws Exception {
    String folder = a[1].replace('.', '/') + "/";
    List<String> names = new ArrayList<>();
    try (JarFile jar = new JarFile(a[0])) {
      for (JarEntry e : Collections.list(jar.entries())) {
        String n = e.getName();
        if (!n.startsWith(folder) || !n.endsWith(".class") || n.substring(folder.length()).contains("/")) continue;
        String simple = n.substring(folder.length(), n.length() - 6);
        boolean method = simple.startsWith("ThriftHiveMetastore$") && (simple.endsWith("_args") || simple.endsWith("_result"));
        if (method || !simple.contains("$")) names.add(simple);
      }
    }
    Collections.sort(names);
    Map<String, TBase> made = new LinkedHashMap<>();
    DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
    for (String simple : names) {
      Class<?> c;
      try { c = Class.forName(a[1] + "." + simple); } catch (Throwable t) { continue; }
      if (!TBase.class.isAssignableFrom(c) || Modifier.isAbstract(c.getModifiers())) continue;
      TBase object = filled(c, 0);
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      object.write(protocol(a[2], new TIOStreamTransport(bytes)));
      String name = simple.substring(simple.indexOf('$') + 1);
      made.put(name, object);
      out.writeUTF(name);
      out.writeInt(bytes.size());
      bytes.writeTo(out);
    }
    out.writeUTF("");
    out.flush();
    DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
    PrintStream lines = new PrintStream(out, true);
    lines.println(made.size());
    for (Map.Entry<String, TBase> e : made.entrySet()) {
      if (!in.readUTF().equals(e.getKey())) throw new IllegalStateException("out of order: " + e.getKey());
      byte[] data = new byte[in.readInt()];
      in.readFully(data);
      TBase back = (TBase) e.getValue().getClass().getConstructor().newInstance();
      boolean same;
      try {
        back.read(protocol(a[2], new TIOStreamTransport(new ByteArrayInputStream(data))));
        same = back.equals(e.getValue());
      } catch (TException x) {
        same = false;
      }
      if (!same) lines.println(e.getKey());
    }
    lines.flush();
  }
}
