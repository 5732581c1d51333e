package dashboard

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Ask asks a Prometheus server for a path, and parses what it answers under "data".
type Ask func(ctx context.Context, path string, data any) error

// Range is the time that panels show.
type Range struct {
	Begin, End time.Time
	Step       time.Duration
	Rate       string // the time that rates are computed over, such as 5m
}

// Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// Series is one line of a panel.
type Series struct {
	Legend string
	Points []Point // none that is not a number
}

// Query returns what a query of a panel shows. Series without any number are left out.
func (r Range) Query(ctx context.Context, ask Ask, t Target) (out []Series, err error) {
	var data struct {
		Result []struct {
			Metric map[string]string `json:"metric"`
			Values [][2]any          `json:"values"`
		} `json:"result"`
	}
	values := url.Values{"query": {strings.ReplaceAll(t.Expr, "$__rate_interval", r.Rate)},
		"start": {seconds(r.Begin)}, "end": {seconds(r.End)}, "step": {fmt.Sprint(r.Step.Seconds())}}
	if err := ask(ctx, "/api/v1/query_range?"+values.Encode(), &data); err != nil {
		return nil, fmt.Errorf("asking for %s: %w", t.Expr, err)
	}
	for _, found := range data.Result {
		s := Series{Legend: legend(t.Legend, found.Metric)}
		for _, v := range found.Values {
			p, err := point(v)
			if err != nil {
				return nil, fmt.Errorf("the answer for %s: %w", t.Expr, err)
			}
			if !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0) {
				s.Points = append(s.Points, p)
			}
		}
		if len(s.Points) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

// seconds is a time as Prometheus takes it.
func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// point parses a pair of Prometheus: a time in seconds, and a value in a string.
func point(pair [2]any) (p Point, err error) {
	at, ok := pair[0].(float64)
	text, isText := pair[1].(string)
	if !ok || !isText {
		return p, fmt.Errorf("%v is not a number and a string", pair)
	}
	p.Value, err = strconv.ParseFloat(text, 64)
	p.At = time.UnixMilli(int64(math.Round(at * 1000)))
	return p, err
}

// label is a label that a legend names.
var label = regexp.MustCompile(`{{\s*([a-zA-Z_]+)\s*}}`)

// legend fills a series' labels into a legend.
func legend(form string, metric map[string]string) string {
	return label.ReplaceAllStringFunc(form, func(found string) string {
		return metric[label.FindStringSubmatch(found)[1]]
	})
}
