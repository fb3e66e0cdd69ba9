package main_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
)

func TestServersShareATable(t *testing.T) {
	t.Parallel()
	args := []string{"--store", "dynamodb", "--dynamodb-endpoint", realtest.DynaliteURL(t), "--dynamodb-table", realtest.TableName()}
	one := start(t, append(args, "--dynamodb-create")...)
	two := start(t, args...)
	one.want(t, "tallystick seq create orders_seq --start 1001 --increment 5", "created orders_seq: next 1001, increment 5, remaining 1844674407370954962\n")
	one.want(t, "tallystick seq next orders_seq -n 2", "1001\n1006\n")
	two.want(t, "tallystick seq next orders_seq -n 2", "6001\n6006\n")
	one.want(t, "tallystick seq next orders_seq", "1011\n")
	two.want(t, "tallystick seq alter orders_seq --increment 1 --block-size 10", "altered orders_seq: next 11001, increment 1, remaining 9223372036854764807\n")
	eventually(t, "the other server takes the alter over", func() bool {
		out, _ := one.run(t, "tallystick seq next orders_seq")
		return strings.HasPrefix(out, "11")
	})
	for _, p := range []*process{one, two} {
		if code := p.stop(t); code != 0 {
			t.Errorf("exit %d: %s", code, p.err)
		}
	}
}

func TestAnotherTableIsRefusedUntilAdopted(t *testing.T) {
	t.Parallel()
	proxy := realtest.NewDynamoProxy(t, realtest.DynaliteURL(t))
	table := realtest.TableName()
	args := []string{"--store", "dynamodb", "--dynamodb-endpoint", proxy.URL, "--dynamodb-table", table}
	p := start(t, append(args, "--dynamodb-create")...)
	p.run(t, "tallystick seq create a && tallystick seq next a -n 5")
	p.stop(t)
	proxy.SetTableID(table, "0f0f0f0f-restored")

	refused := launch(t, nil, args...)
	if code := refused.wait(t); code != 1 || !strings.Contains(refused.err.String(), "seq adopt --skip") || strings.Count(refused.err.String(), "\n") != 1 {
		t.Errorf("exit %d: %s%s", code, refused.out, refused.err)
	}
	wrong := strings.NewReplacer(table, table+"_wrong").Replace(strings.Join(args, " "))
	for range 2 { // the second finds no table either
		if out, code := shell(t, t.TempDir(), "tallystick seq adopt --skip 1000 --dynamodb-create "+wrong+"; ls -A"); !strings.Contains(out, "does not exist") || strings.Contains(out, "data") {
			t.Errorf("adopt of a table that is none: %s[exit %d]", out, code)
		}
	}
	out, code := shell(t, t.TempDir(), "tallystick seq adopt --skip 1000 "+strings.Join(args, " "))
	if code != 0 || out != "adopted DynamoDB table "+table+": moved 1 sequences on by 1000 values\n" {
		t.Errorf("adopt: %s[exit %d]", out, code)
	}
	start(t, args...).want(t, "tallystick seq next a", "1006\n")
}

func TestStoresThatCannotBeReachedAreOneLine(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, says string
		args, env  []string
	}{
		{"nobody listens", ": connect: connection refused (check --dynamodb-endpoint", []string{"--dynamodb-endpoint", "http://" + realtest.FreeAddr(t)}, nil},
		{"no such table", "does not exist at http://127.0.0.1:", []string{"--dynamodb-endpoint", realtest.DynaliteURL(t), "--dynamodb-table", realtest.TableName()}, nil},
		{"no region", "(give --dynamodb-region, or set AWS_REGION)", nil, nil},
		{"no credentials", "(set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)", nil, []string{"AWS_REGION=eu-central-1", "AWS_EC2_METADATA_DISABLED=true"}},
		{"no such profile", "(check AWS_PROFILE and AWS's files)", nil, []string{"AWS_PROFILE=none"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			p := launch(t, tc.env, append([]string{"--store", "dynamodb"}, tc.args...)...)
			code, said := p.wait(t), p.err.String()
			if code != 1 || strings.Count(said, "\n") != 1 || !strings.Contains(said, tc.says) || strings.Contains(said, "StatusCode") || time.Since(begin) > 15*time.Second {
				t.Errorf("exit %d after %v: %s", code, time.Since(begin), said)
			}
		})
	}
}
