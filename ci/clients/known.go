package main

// clients are all clients, each with its default behaviour. If a program uses tickets on request
// only, there is a second client that requests them.
var clients = []*client{
	{
		// curl disables tickets in OpenSSL (SSL_OP_NO_TICKET), which affects TLS 1.2 tickets.
		name: "curl", ids: true, tls13: true,
		tools: []string{"curl"}, banner: []string{"curl", "--version"},
		visit: untimed(visitCurl),
	},
	{
		name: "openssl", ids: true, tickets: true, tls13: true,
		tools: []string{"openssl"}, banner: []string{"openssl", "version"},
		visit: untimed(visitOpenSSL),
	},
	{
		name: "gnutls-cli", ids: true, tickets: true, tls13: true, pairs: true,
		tools: []string{"gnutls-cli"}, banner: []string{"gnutls-cli", "--version"},
		visit: untimed(visitGnuTLS),
	},
	{
		name: "java", ids: true, tickets: true, tls13: true,
		tools: []string{"java", "javac"}, banner: []string{"java", "--version"},
		prepare: prepareJava, visit: program("java", "-cp", ".", "-XX:TieredStopAtLevel=1", "Client"),
	},
	{
		name: "node", ids: true, tickets: true, tls13: true,
		tools: []string{"node"}, banner: []string{"node", "-p", `process.version + " with OpenSSL " + process.versions.openssl`},
		visit: program("node", "client.js"),
	},
	{
		name: "python", ids: true, tickets: true, tls13: true,
		tools:  []string{"python3"},
		banner: []string{"python3", "-c", `import ssl, sys; print(sys.version.split()[0], "with", ssl.OPENSSL_VERSION)`},
		visit:  program("python3", "client.py"),
	},
	{
		name: "ruby", ids: true, tickets: true, tls13: true, hundreds: true,
		tools:  []string{"ruby"},
		banner: []string{"ruby", "-ropenssl", "-e", `puts RUBY_VERSION + " with " + OpenSSL::OPENSSL_LIBRARY_VERSION`},
		visit:  program("ruby", "client.rb"),
	},
	{
		name: "bearssl", ids: true, lacks13: true, hundreds: true,
		tools: []string{"cc"}, banner: packageVersion("libbearssl-dev"), prepare: prepareC("bearssl.c", "bearssl", "bearssl"),
		visit: program("./bearssl"),
	},
	{
		name: "wolfssl", ids: true, tls13: true,
		tools: []string{"cc"}, banner: packageVersion("libwolfssl-dev"), prepare: prepareC("wolfssl.c", "wolfssl", "wolfssl"),
		visit: program("./wolfssl"),
	},
	{
		name: "wolfssl-tickets", ids: true, tickets: true, tls13: true,
		tools: []string{"cc"}, banner: packageVersion("libwolfssl-dev"),
		prepare: prepareC("wolfssl.c", "wolfssl", "wolfssl-tickets", "-DTICKETS"), visit: program("./wolfssl-tickets"),
	},
	{
		name: "mbedtls", ids: true, tickets: true, lacks13: true,
		tools: []string{"cc"}, banner: packageVersion("libmbedtls-dev"),
		prepare: prepareC("mbedtls.c", "mbedtls", "mbedtls", "-lmbedx509", "-lmbedcrypto"), visit: program("./mbedtls"),
	},
	{
		name: "mbedtls-ids", ids: true, lacks13: true,
		tools: []string{"cc"}, banner: packageVersion("libmbedtls-dev"),
		prepare: prepareC("mbedtls.c", "mbedtls", "mbedtls-ids", "-DIDS_ONLY", "-lmbedx509", "-lmbedcrypto"),
		visit:   program("./mbedtls-ids"),
	},
	{
		name: "nss", ids: true, tls13: true,
		tools: []string{"tstclnt", "certutil"}, banner: packageVersion("libnss3-tools"), prepare: prepareNSS,
		visit: untimed(visitNSS()),
	},
	{
		name: "nss-tickets", ids: true, tickets: true, tls13: true,
		tools: []string{"tstclnt", "certutil"}, banner: packageVersion("libnss3-tools"), prepare: prepareNSS,
		visit: untimed(visitNSS("-u")),
	},
	{name: "go", banner: []string{"go", "version"}, tickets: true, tls13: true, visit: untimed(visitGo(dialStd))},
	{name: "ossl", ids: true, tickets: true, tls13: true, visit: untimed(visitGo(dialOSSL))},
}

// packageVersion is the banner of a client that can't print its version itself.
func packageVersion(name string) []string { return []string{"dpkg-query", "-W", name} }
