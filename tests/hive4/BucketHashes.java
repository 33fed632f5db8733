import com.fasterxml.jackson.databind.*;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.hadoop.hive.serde2.objectinspector.*;
import org.apache.hadoop.hive.serde2.objectinspector.primitive.*;
import org.apache.hadoop.hive.serde2.typeinfo.*;

/**
 * Hashes rows with Hive's own classes. Standard input: a row in each line, [[type, value], ...], values as texts, binary ones in
 * hexadecimal digits, maps as lists of pairs, structs as lists. Standard output: the hashes of version 1 and 2 for each line.
 */
public class BucketHashes {
  public static void main(String[] unused) throws Exception {
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false);
    System.setOut(System.err);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    ObjectMapper mapper = new ObjectMapper();
    for (String line; (line = in.readLine()) != null; ) {
      JsonNode row = mapper.readTree(line);
      Object[] values = new Object[row.size()];
      ObjectInspector[] inspectors = new ObjectInspector[row.size()];
      for (int i = 0; i < values.length; i++) {
        TypeInfo type = TypeInfoUtils.getTypeInfoFromTypeString(row.get(i).get(0).asText());
        inspectors[i] = TypeInfoUtils.getStandardJavaObjectInspectorFromTypeInfo(type);
        values[i] = value(row.get(i).get(1), type, inspectors[i]);
      }
      out.println(ObjectInspectorUtils.getBucketHashCodeOld(values, inspectors) + " "
          + ObjectInspectorUtils.getBucketHashCode(values, inspectors));
    }
    out.flush();
  }

  private static Object value(JsonNode node, TypeInfo type, ObjectInspector inspector) {
    if (node.isNull()) return null;
    switch (type.getCategory()) {
      case PRIMITIVE:
        if (type.getTypeName().equals("binary")) {
          String text = node.asText();
          byte[] bytes = new byte[text.length() / 2];
          for (int i = 0; i < bytes.length; i++) bytes[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
          return bytes;
        }
        return ObjectInspectorConverters
            .getConverter(PrimitiveObjectInspectorFactory.javaStringObjectInspector, inspector).convert(node.asText());
      case LIST:
        List<Object> list = new ArrayList<>();
        for (JsonNode each : node)
          list.add(value(each, ((ListTypeInfo) type).getListElementTypeInfo(), ((ListObjectInspector) inspector).getListElementObjectInspector()));
        return list;
      case MAP:
        Map<Object, Object> map = new LinkedHashMap<>();
        MapObjectInspector inner = (MapObjectInspector) inspector;
        for (JsonNode each : node)
          map.put(value(each.get(0), ((MapTypeInfo) type).getMapKeyTypeInfo(), inner.getMapKeyObjectInspector()),
              value(each.get(1), ((MapTypeInfo) type).getMapValueTypeInfo(), inner.getMapValueObjectInspector()));
        return map;
      default:
        List<Object> struct = new ArrayList<>();
        List<? extends StructField> fields = ((StructObjectInspector) inspector).getAllStructFieldRefs();
        for (int i = 0; i < fields.size(); i++)
          struct.add(value(node.get(i), ((StructTypeInfo) type).getAllStructFieldTypeInfos().get(i), fields.get(i).getFieldObjectInspector()));
        return struct;
    }
  }
}
