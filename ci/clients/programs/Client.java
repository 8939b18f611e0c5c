// usage: java Client PORT CA VERSION FRESH REUSED
//
// FRESH requests by contexts of their own, then one request, and REUSED more by the same context, which keeps sessions.

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;

public class Client {
	static SSLSocketFactory sockets(String ca) throws Exception {
		KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
		store.load(null, null);
		try (InputStream in = new FileInputStream(ca)) {
			store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
		}
		TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
		trust.init(store);
		SSLContext context = SSLContext.getInstance("TLS");
		context.init(null, trust.getTrustManagers(), null);
		return context.getSocketFactory();
	}

	static void get(String port, SSLSocketFactory sockets) throws Exception {
		HttpsURLConnection conn = (HttpsURLConnection) new URL("https://localhost:" + port + "/").openConnection();
		conn.setSSLSocketFactory(sockets);
		conn.setRequestProperty("Connection", "close");
		try (InputStream in = conn.getInputStream()) {
			String body = new String(in.readAllBytes());
			if (conn.getResponseCode() != 200 || !body.equals("ok\n"))
				throw new IOException(conn.getResponseCode() + " " + body);
		}
	}

	public static void main(String[] args) throws Exception {
		String port = args[0], ca = args[1];
		int fresh = Integer.parseInt(args[3]), reused = Integer.parseInt(args[4]);
		System.setProperty("jdk.tls.client.protocols", "TLSv" + args[2]);
		long start = System.nanoTime();
		for (int i = 0; i < fresh; i++)
			get(port, sockets(ca));
		long between = System.nanoTime();
		SSLSocketFactory one = sockets(ca);
		get(port, one);
		long again = System.nanoTime();
		for (int i = 0; i < reused; i++)
			get(port, one);
		double first = (between - start) / 1e9, second = (System.nanoTime() - again) / 1e9;
		System.out.println("seconds " + first + " " + second + " resumed ?"); // JSSE doesn't say
	}
}
