package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"
)

// Identify asks a program, ovnkube, for the version, commit and time of the source. So the image says of itself what
// the program in it says. epoch, if it is not "", overrides the time: seconds since 1970, as SOURCE_DATE_EPOCH
// (https://reproducible-builds.org/specs/source-date-epoch/).
func (s *Source) Identify(ctx context.Context, program, epoch string) error {
	out, err := exec.CommandContext(ctx, program, "version", "-o", "json").Output()
	if err != nil {
		return fmt.Errorf("asking %s for its version: %w", program, err)
	}
	var v struct {
		Version, Commit string
		CommitTime      time.Time
	}
	if err := json.Unmarshal(out, &v); err != nil {
		return fmt.Errorf("reading the version of %s: %w", program, err)
	}
	if v.Version == "(devel)" {
		return fmt.Errorf("%s has no version: build in a git checkout, or with NORTHBOUND_VERSION=v1.2.3; "+
			"if git refuses a checkout of another user, see safe.directory in git-config(1)", program)
	}
	s.Version, s.Commit, s.Time = v.Version, v.Commit, v.CommitTime
	if epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return fmt.Errorf("reading SOURCE_DATE_EPOCH %q: %w: want seconds since 1970", epoch, err)
		}
		s.Time = time.Unix(seconds, 0)
	}
	if s.Time.IsZero() {
		return errors.New("the commit's time is not known: set SOURCE_DATE_EPOCH to seconds since 1970")
	}
	return nil
}
