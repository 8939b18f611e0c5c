package terminator

// A plan is a checked Config in parts, of which each part of a Server gets its own. Its texts are parsed.
type plan struct {
	config    *Config
	senders   senders
	limits    Limits
	accessLog bool
	portOfTLS string // to which plain requests are redirected, or "" for the default one
	sites     []*sitePlan
	secrets   []string // the names of files that no client may read
}

// compile returns the plan, or an error that names the first setting that is wrong, or contradicts another
// one. It reads no file: those that a Config names may change until the plan is put into effect.
func (c *Config) compile() (*plan, error) {
	p := &plan{config: c, limits: c.Limits, accessLog: c.AccessLog, portOfTLS: c.portOfTLS()}
	err := c.checkListen()
	if err == nil {
		err = c.checkRedirect()
	}
	if err == nil {
		err = checkUser(c.User)
	}
	if err == nil {
		p.senders, err = parseSenders(c.AcceptProxy)
	}
	if err == nil {
		err = c.checkEngine()
	}
	if err == nil {
		err = c.Limits.check()
	}
	if err == nil {
		err = c.checkPlain()
	}
	if err == nil {
		p.sites, err = c.compileSites()
	}
	if err == nil {
		err = c.checkACME()
	}
	if err == nil {
		err = c.checkLandlock()
	}
	if err != nil {
		return nil, err
	}
	p.secrets = c.secretNames()
	return p, nil
}
