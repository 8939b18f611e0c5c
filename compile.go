package ossl

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/ossl-go/ossl/internal/chain"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/negotiate"
	"github.com/ossl-go/ossl/internal/stdtls"
)

// newContext compiles a configuration. parent is nil, or the Context whose GetConfigForClient returned the
// configuration: then o is its options, and the new Context shares its ticket keys, trust anchors,
// certificates and observer.
func newContext(config *tls.Config, o *options, parent *Context) (*Context, error) {
	c, err := compileContext(config, o, parent)
	if err != nil && o.refused != nil {
		err = o.refused(err)
	}
	return c, err
}

// compileContext is newContext in these steps: check its fields, work out the offer, find
// the ticket keys and trust anchors, convert the certificates, and make the SSL_CTX.
func compileContext(config *tls.Config, o *options, parent *Context) (*Context, error) {
	lib, err := loadLibrary(o.library)
	if err != nil {
		return nil, err
	}
	if err := libssl.AskNames(false); noMemory(err) { // without the names there would be less to offer
		return nil, libraryError(err)
	}
	c := &Context{opts: o, pausesToVerify: lib.Number >= libssl.Version3_0}
	if parent != nil {
		c.creds, c.observer = parent.creds, parent.observer
	} else {
		c.observer = newObserver(o.events, o.labels)
		c.creds = newCredentialCache(c.observer, o.certificates)
	}
	c.chosen = newContextCache(c.observer, o.configurations)
	if c.config, err = checkedConfig(config, o); err != nil {
		return nil, err
	}
	if err := o.checkCRLs(c.config, parent != nil); err != nil {
		return nil, err
	}
	if c.fips, err = o.setUpFIPS(c.config, parent); err != nil {
		return nil, err
	}
	if c.fips {
		if err := libssl.AskNames(true); noMemory(err) {
			return nil, libraryError(err)
		}
	}
	if err := c.checkPSKOptions(parent != nil); err != nil {
		return nil, err
	}
	if err := c.logKeys(); err != nil {
		return nil, err
	}
	if c.trace = o.trace; c.trace == nil {
		if c.trace, err = traceFile(); err != nil {
			return nil, err
		}
	}
	offer, err := c.negotiate()
	if err != nil {
		return nil, configError(err)
	}
	c.rule = &credentialRule{fips: c.fips, host: c.host, signatures: offer.SignatureSchemes, ordered: o.signatures != nil}
	level, err := c.host.Level(o.securityLevel, o.levelNamed)
	if err != nil {
		return nil, configError(err)
	}
	if err := c.chooseRecords(lib); err != nil {
		return nil, err
	}
	c.chooseServing()
	if c.ring, err = c.makeRing(parent); err != nil {
		return nil, err
	}
	if err := c.checkSessionTemplate(); err != nil {
		return nil, err
	}
	clientCAs, err := c.findTrust(parent)
	if err != nil {
		return nil, err
	}
	if err := c.convertCertificates(parent != nil); err != nil {
		return nil, err
	}
	settings := c.settings(offer, level, clientCAs)
	if settings.PSK, err = c.pskSettings(offer); err != nil {
		return nil, err
	}
	if err := c.makeSSL(settings, offer); err != nil {
		return nil, err
	}
	if err := c.useCRLs(lib); err != nil { // last, since lists remember the first Context
		return nil, err
	}
	return c, nil
}

// checkedConfig returns a copy of config, completed by the options, whose fields can be honoured.
func checkedConfig(config *tls.Config, o *options) (*tls.Config, error) {
	if config == nil {
		config = new(tls.Config)
	}
	config = config.Clone()
	if o.http2 {
		offerHTTP2(config)
	}
	if o.restrict != nil {
		if err := o.restrict(config); err != nil {
			return nil, err
		}
	}
	return config, checkConfig(config)
}

// negotiate finds the host's policy and works out the configuration's offer.
func (c *Context) negotiate() (offer *negotiate.Offer, err error) {
	if c.host, err = c.opts.hostPolicy(c.fips); err != nil {
		return nil, err
	}
	var filters []negotiate.Filter
	if c.opts.http2 {
		filters = append(filters, negotiate.HTTP2{})
	}
	if c.fips {
		filters = append(filters, negotiate.FIPS{})
	}
	// The policy comes last, so that it isn't blamed for the absence of an ID in the library.
	filters = append(filters, negotiate.Library{FIPS: c.fips}, c.host)
	return negotiate.NewOffer(&negotiate.Asked{
		Config:            c.config,
		CipherSuiteOrder:  c.opts.suiteOrder,
		TLS13CipherSuites: c.opts.suites13,
		SignatureSchemes:  c.opts.signatures,
		All:               c.opts.nothingOmitted,
	}, filters...)
}

// chooseRecords chooses the record path, and whether the kernel seals.
func (c *Context) chooseRecords(lib *libssl.Library) error {
	o, records := c.opts, c.opts.records
	if c.host.Pads() {
		if records == RecordsDirect {
			return configError(c.host.Refuse(libssl.TopicPadding, "WithRecordPath",
				"records are padded, which only RecordsLibssl does"))
		}
		records = RecordsLibssl
	}
	if o.kernelTLS && o.records == RecordsLibssl && o.recordsNamed {
		return &ConfigError{Field: "WithKernelTLS", Reason: "RecordsLibssl leaves the records with libssl"}
	}
	c.sealsAlerts = records == RecordsDirect || lib.Number < libssl.Version5_0
	c.directRecords = c.sealsAlerts && records != RecordsLibssl
	c.kernelTLS = o.kernelTLS && c.directRecords
	return nil
}

// chooseServing decides whether the Context can serve, and whether its servers choose at the
// ClientHello.
func (c *Context) chooseServing() {
	config, needsPSK := c.config, c.opts.psk.serversNeed()
	c.pausesAtHello = config.GetConfigForClient != nil || config.GetCertificate != nil || len(config.Certificates) != 1 && !needsPSK
	if len(config.Certificates) == 0 && config.GetCertificate == nil && config.GetConfigForClient == nil && !needsPSK {
		c.serveErr = errors.New("tls: neither Certificates, GetCertificate, nor GetConfigForClient set in Config")
	}
}

// keepsSessions reports whether clients keep sessions, to resume them.
func (c *Context) keepsSessions() bool {
	return c.config.ClientSessionCache != nil && !c.config.SessionTicketsDisabled
}

func (c *Context) checkSessionTemplate() error {
	if !c.keepsSessions() {
		return nil
	}
	if _, err := stdtls.SessionTemplate(); err != nil {
		return &ConfigError{Field: "ClientSessionCache", Reason: "crypto/tls makes no session that can carry ossl's", Err: err}
	}
	return nil
}

// findTrust finds FIPS mode's trust anchors. It returns, in any mode, the names of the authorities
// that a server asks clients for.
func (c *Context) findTrust(parent *Context) (clientCAs [][]byte, err error) {
	asksClients := c.config.ClientAuth != tls.NoClientCert
	if !c.fips {
		if asksClients && c.config.ClientCAs != nil {
			clientCAs = subjects(c.config.ClientCAs)
		}
		return clientCAs, nil
	}
	if parent != nil && parent.fips {
		c.optionStores = parent.optionStores
	} else if c.optionStores, err = c.opts.rootStores(); err != nil {
		return nil, err
	}
	if c.stores, err = c.optionStores.withPools(c.config, parent != nil); err != nil {
		return nil, err
	}
	if asksClients {
		clientCAs = c.stores.names
	}
	return clientCAs, nil
}

// convertCertificates converts the configuration's certificates for libssl.
func (c *Context) convertCertificates(shared bool) error {
	config := c.config
	config.Certificates = slices.Clone(config.Certificates) // for Leaf, which SupportsCertificate would parse each time
	for i := range config.Certificates {
		cred, err := c.ownCredential(&config.Certificates[i], shared)
		if err != nil {
			return &ConfigError{Field: "Certificates", Reason: fmt.Sprintf("certificate %d can't be used", i), Err: err}
		}
		c.static = append(c.static, cred)
		c.asksToSign = c.asksToSign || cred.AsksGo()
	}
	//lint:ignore SA1019 deprecated, and still honoured by crypto/tls
	for _, cert := range config.NameToCertificate {
		c.asksToSign = c.asksToSign || cert != nil && onlySigns(cert.PrivateKey)
	}
	return nil
}

// settings returns the settings of the SSL_CTX.
func (c *Context) settings(offer *negotiate.Offer, level int, clientCAs [][]byte) *libssl.ContextConfig {
	config, o := c.config, c.opts
	s := &libssl.ContextConfig{
		MinVersion:        offer.MinVersion(),
		MaxVersion:        offer.MaxVersion(),
		SecurityLevel:     level,
		ExactLevel:        o.levelNamed || o.withoutHostPolicy,
		WithoutHostPolicy: o.withoutHostPolicy,
		HostCommands:      c.host.HostCommands(),
		RequestClientCert: config.ClientAuth != tls.NoClientCert,
		RequireClientCert: config.ClientAuth == tls.RequireAnyClientCert || config.ClientAuth == tls.RequireAndVerifyClientCert,
		WantHello:         c.pausesAtHello || c.mayServeUnsigned(offer) || o.psk.find != nil,
		Tickets:           c.ring != nil,
		Cached:            o.cache != nil && c.serveErr == nil,
		TLS13Tickets:      o.tickets13,
		KeepSessions:      c.keepsSessions(),
		SessionTimeout:    o.lifetime,
		// A session is kept with the certificate that was sent, or with none.
		WantCert:               config.GetClientCertificate != nil || len(config.Certificates) > 0 || config.ClientSessionCache != nil,
		WantKeyLog:             config.KeyLogWriter != nil,
		WantTrace:              c.trace != nil,
		VerifyPauses:           c.pausesToVerify,
		FIPS:                   c.fips,
		DirectRecords:          c.directRecords,
		SealRefusals:           c.sealsAlerts,
		CipherSuites:           offer.CipherSuites,
		TLS13CipherSuites:      offer.TLS13CipherSuites,
		Groups:                 offer.Groups,
		SignatureSchemes:       offer.SignatureSchemes,
		ClientSignatureSchemes: offer.ClientSignatureSchemes,
		ALPN:                   alpnWire(config.NextProtos),
		ALPNByClient:           o.alpnByClient,
		ClientCAs:              clientCAs,
		Policy:                 sessionPolicy(config, c.fips, clientCAs),
		Shards:                 o.shardCount(),
	}
	if o.withoutHostPolicy { // the host may have a list of its own
		s.ClientSignatureSchemes = offer.SignatureSchemes
	}
	if len(c.static) == 1 {
		s.Credential = c.static[0]
	}
	return s
}

// makeSSL makes the SSL_CTX, and records which of the named cipher suites and groups it leaves out.
func (c *Context) makeSSL(settings *libssl.ContextConfig, offer *negotiate.Offer) (err error) {
	if c.ssl, err = libssl.NewContext(settings); err != nil {
		return c.explain(err, settings.SecurityLevel)
	}
	c.level, c.suites = c.ssl.SecurityLevel(), settings.CipherSuites
	c.verifier = c.newVerifier(settings.SecurityLevel)
	if settings.MinVersion <= tls.VersionTLS12 && (settings.PSK == nil || !settings.PSK.Alone) {
		err := offer.OmitSuites(func(id uint16) string {
			if c.ssl.HasCipher(id) {
				return ""
			}
			return fmt.Sprintf("%s is not in this OpenSSL, or weaker than security level %d", tls.CipherSuiteName(id), c.level)
		})
		if err != nil {
			return configError(err)
		}
	}
	c.serveUnsigned(offer)
	for _, o := range offer.Omitted {
		c.omitted = append(c.omitted, Omission(o))
	}
	if c.serveErr == nil && len(c.config.Certificates) == 1 && !c.pausesAtHello && settings.MaxVersion <= tls.VersionTLS12 {
		c.serveErr = checkTLS12Leaf(c.config.Certificates[0].Leaf)
	}
	return nil
}

// explain turns libssl's refusal of the settings into an error that names the field or option.
func (c *Context) explain(err error, level int) error {
	err = contextError(err)
	var e *ConfigError
	if errors.As(err, &e) && e.Field == "Certificates" {
		return c.explainCertificate(e.Field, &c.config.Certificates[0], level, e.Err)
	}
	return err
}

// explainCertificate returns the error for a certificate that libssl refuses with err. The security
// level, which may be the host's, is the usual reason.
func (c *Context) explainCertificate(field string, cert *tls.Certificate, level int, err error) error {
	if errors.Is(err, syscall.ENOMEM) {
		return err
	}
	weakness := chain.OwnWeakness(cert.Certificate, level)
	if r := c.host.ExplainCertificate(field, weakness, err, c.opts.securityLevel, c.opts.levelNamed); r != nil {
		return configError(r)
	}
	e := &ConfigError{Field: field, Reason: "certificate can't be used", Err: err}
	if weakness != "" {
		e.Reason += ": " + weakness + "; use a stronger certificate, or another level by WithSecurityLevel"
	}
	return e
}

// checkTLS12Leaf returns an error if a leaf certificate can't serve in TLS 1.2, which has no ML-DSA:
// libssl finds no suite for an ECDSA certificate whose key usage doesn't allow signing. In TLS 1.3
// libssl ignores the key usage; crypto/tls always does.
func checkTLS12Leaf(leaf *x509.Certificate) error {
	if libssl.MLDSAKey(leaf.PublicKey) != 0 {
		return &ConfigError{Field: "Certificates", Reason: "an ML-DSA certificate requires TLS 1.3"}
	}
	if leaf.PublicKeyAlgorithm != x509.ECDSA || leaf.KeyUsage == 0 || leaf.KeyUsage&x509.KeyUsageDigitalSignature != 0 {
		return nil
	}
	return &ConfigError{Field: "Certificates", Reason: "the key usage of the ECDSA certificate lacks digitalSignature, " +
		"which OpenSSL requires of a TLS 1.2 server's certificate"}
}

// contextError names the field or option whose setting libssl refused.
func contextError(err error) error {
	fields := map[string]string{
		"MinVersion":            "MinVersion",
		"MaxVersion":            "MaxVersion",
		"TLS 1.3 cipher suites": "WithTLS13CipherSuites",
		"CipherSuites":          "CipherSuites",
		"CurvePreferences":      "CurvePreferences",
		"signature algorithms":  "WithSignatureAlgorithms",
		"NextProtos":            "NextProtos",
		"Certificates":          "Certificates",
		"ClientCAs":             "ClientCAs",
		"host policy":           negotiate.HostPolicyField,
		"pre-shared key suites": "WithPSK",
	}
	var e *libssl.Error
	if errors.As(err, &e) && fields[e.Setting] != "" {
		return settingRefused(fields[e.Setting], "OpenSSL refuses it", err)
	}
	return libraryError(err)
}

// settingRefused returns the error for a field or option that OpenSSL refuses, unless it only had no
// memory.
func settingRefused(field, reason string, err error) error {
	if err = libraryError(err); errors.Is(err, syscall.ENOMEM) {
		return err
	}
	return &ConfigError{Field: field, Reason: reason, Err: err}
}

// subjects returns the subjects of a pool's certificates, which a server sends to clients.
func subjects(pool *x509.CertPool) [][]byte {
	return pool.Subjects() //lint:ignore SA1019 crypto/tls does the same; the pool is not the system's
}
