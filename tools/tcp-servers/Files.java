import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Executors;

/** A server of files as the JDK has it: java Files.java PORT FOLDER. */
class Server {
    public static void main(String[] words) throws Exception {
        Path folder = Path.of(words[1]);
        HttpServer server = HttpServer.create(new InetSocketAddress(Integer.parseInt(words[0])), 0);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/", exchange -> {
            byte[] body = Files.readAllBytes(folder.resolve(exchange.getRequestURI().getPath().substring(1)));
            exchange.sendResponseHeaders(200, body.length);
            try (var out = exchange.getResponseBody()) {
                out.write(body);
            }
        });
        server.start();
    }
}
