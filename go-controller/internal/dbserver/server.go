package dbserver

// ServerArgs is the command that runs the database's server, once Prepare has returned (ovsdb-server(1)).
func (m Member) ServerArgs(d Database) []string {
	l := m.Layout
	return []string{
		"ovsdb-server", "--no-chdir", "-vconsole:info", "-vsyslog:off", "-vfile:off",
		"--unixctl=" + l.Control(d), "--remote=punix:" + l.Socket(d),
		"--remote=db:" + d.Name + "," + d.Global + ",connections",
		"--private-key=" + l.key(d), "--certificate=" + l.key(d), "--ca-cert=" + l.ca(d), l.File(d),
	}
}

// ServerEnv is what the server's environment has besides: the directory that Raft's addresses are relative to.
func (m Member) ServerEnv() []string { return []string{"OVS_RUNDIR=" + m.Layout.Run} }
