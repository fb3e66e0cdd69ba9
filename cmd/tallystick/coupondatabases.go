package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tallystick/tallystick/coupon"
)

// couponDatabases are the databases of coupons and the keys of their codes.
type couponDatabases struct {
	Control string           `yaml:"control"`
	Shards  []couponDatabase `yaml:"shards"`
	Keys    []couponKey      `yaml:"check_keys"`
	Events  couponEvents     `yaml:"events"`

	embedded bool // the places are files
}

// couponEvents is the queue of events: NATS elsewhere, or without a URL in this
// process.
type couponEvents struct {
	URL         string `yaml:"url"`
	Credentials string `yaml:"credentials"` // file
	CA          string `yaml:"ca"`          // file
	Replicas    int    `yaml:"replicas"`

	dir string // of the one in this process
}

// A couponDatabase is one physical database.
type couponDatabase struct {
	Name string `yaml:"name"`
	DSN  string `yaml:"dsn"`
}

// A couponKey makes and checks codes.
type couponKey struct {
	ID      string    `yaml:"id"`
	Created time.Time `yaml:"created"`
	Secret  string    `yaml:"secret"` // hexadecimal
}

// databases returns where coupons are. Embedded ones are made if there are none.
func (o *couponOptions) databases(data string) (couponDatabases, error) {
	if o.where == couponsEmbedded {
		return embeddedCoupons(filepath.Join(data, couponFolder))
	}
	b, err := os.ReadFile(o.where)
	if err != nil {
		return couponDatabases{}, failed("--coupons takes embedded, off or the name of a file", "cannot read where coupons are: %v", err)
	}
	d, err := parseCoupons(b, os.LookupEnv)
	if err != nil {
		return d, failed("docs/coupon.md shows a sound one", "%s: %v", o.where, err)
	}
	return d, nil
}

// parseCoupons reads a file that says where coupons are. ${NAME} stands for the
// environment's. No error shows a value: it may be a secret.
func parseCoupons(b []byte, lookup func(string) (string, bool)) (couponDatabases, error) {
	var missing []string
	text := os.Expand(string(b), func(name string) string {
		value, ok := lookup(name)
		if !ok {
			missing = append(missing, name)
		}
		return value
	})
	var d couponDatabases
	if len(missing) > 0 {
		return d, fmt.Errorf("%s is not set in the environment", strings.Join(missing, ", "))
	}
	dec := yaml.NewDecoder(strings.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&d); err != nil {
		return couponDatabases{}, errors.New("it is not the YAML that is expected: keys control, shards (name, dsn), check_keys (id, created, secret) and events (url, credentials, ca, replicas)")
	}
	switch {
	case d.Control == "":
		return d, errors.New("control is missing: the DSN of the control database")
	case len(d.Shards) == 0 || len(d.Shards) > 32:
		return d, fmt.Errorf("there are %d shards: want 1 to 32 databases", len(d.Shards))
	case slices.ContainsFunc(d.Shards, func(s couponDatabase) bool { return s.Name == "" || s.DSN == "" }):
		return d, errors.New("a shard lacks name or dsn")
	case len(d.Keys) == 0:
		return d, errors.New("check_keys is missing: at least one key with id, created and secret")
	}
	return d, nil
}

// embeddedCoupons returns the databases in a folder, which it makes.
func embeddedCoupons(dir string) (couponDatabases, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return couponDatabases{}, err
	}
	d := couponDatabases{embedded: true}
	d.Control, d.Shards = couponFiles(dir)
	path := filepath.Join(dir, "check.key")
	if err := d.keepsKey(path); err != nil {
		return couponDatabases{}, err
	}
	key, err := ownCheckKey(path)
	d.Keys = []couponKey{key}
	return d, err
}

// keepsKey refuses databases in files that lack the key of their codes, which is
// made before the first of them: another one would refuse each code that is out.
func (d couponDatabases) keepsKey(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	places := []string{d.Control}
	for _, s := range d.Shards {
		places = append(places, s.DSN)
	}
	for _, file := range places {
		if _, err := os.Stat(file); err == nil {
			return failed("restore it from where the data was backed up", "%s is missing, and %s has coupons whose codes it made", path, file)
		}
	}
	return nil
}

// ownCheckKey returns the key in a file, which it makes once. Whoever loses it
// loses every code that was made with it.
func ownCheckKey(path string) (couponKey, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		secret := make([]byte, 32)
		rand.Read(secret)
		b = []byte(hex.EncodeToString(secret) + "\n")
		err = writeOnce(path, b)
	}
	if err != nil {
		return couponKey{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return couponKey{}, err
	}
	return couponKey{ID: "embedded", Created: info.ModTime(), Secret: strings.TrimSpace(string(b))}, nil
}

// writeOnce writes a new file that only its owner may read, whole or not at all,
// and returns when it is on the disk.
func writeOnce(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.new") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// codes returns what makes and reads codes.
func (d couponDatabases) codes() (*coupon.Codes, error) {
	var keys []coupon.CheckKey
	for _, k := range d.Keys {
		secret, err := hex.DecodeString(k.Secret)
		if err != nil {
			return nil, failed("write it as hexadecimal digits, like `openssl rand -hex 32` prints", "the secret of check key %q is not hexadecimal", k.ID)
		}
		key, err := coupon.NewCheckKey(k.ID, k.Created, secret)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return coupon.NewCodes(keys...)
}
