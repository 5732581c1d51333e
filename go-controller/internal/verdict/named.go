package verdict

// Named lists the address sets and port groups that a match names, once for each time. OVN ignores the whole ACL when
// one of them does not exist.
func Named(acl string) (sets, groups []string, err error) {
	m, err := parse(acl)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range m.compares {
		sets, groups = append(sets, c.operand.sets...), append(groups, c.operand.groups...)
	}
	return sets, groups, nil
}
