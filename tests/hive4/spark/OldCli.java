import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Runs the command line of Hive 3 on a Java whose class loader it does not know. Arguments: folders of jars and settings, its own. */
public class OldCli {
  public static void main(String[] given) throws Exception {
    List<URL> urls = new ArrayList<>();
    urls.add(Path.of(given[1]).toUri().toURL());
    for (File jar : new File(given[0]).listFiles()) urls.add(jar.toURI().toURL());
    ClassLoader loader = new URLClassLoader(urls.toArray(new URL[0]), ClassLoader.getPlatformClassLoader());
    Thread.currentThread().setContextClassLoader(loader);
    String[] rest = java.util.Arrays.copyOfRange(given, 2, given.length);
    loader.loadClass("org.apache.hadoop.hive.cli.CliDriver").getMethod("main", String[].class).invoke(null, (Object) rest);
  }
}
