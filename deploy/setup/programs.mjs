import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"
import process from "node:process"
import { say } from "./progress.mjs"

const has = (program) =>
  (process.env.PATH ?? "").split(delimiter).some((directory) => existsSync(join(directory, program)))

/** Programs that tests run beside the server, with Debian's packages of each. */
const programs = [
  { program: "redis-server", debian: "redis-server" },
  { program: "chromium", debian: "chromium" },
  { program: "python3", debian: "python3 python3-venv" },
  { program: "php", debian: "php-cli" },
  { program: "bwrap", debian: "bubblewrap" },
  { program: "nginx", debian: "nginx-light" },
  { program: "caddy", debian: "caddy" },
  { program: "bsdtar", debian: "libarchive-tools" },
  { program: "exim4", debian: "exim4-daemon-light" },
  { program: "dig", debian: "bind9-dnsutils" }
]

/**
 * Installs missing programs of the tests where no question is needed: as root on a system with apt. Elsewhere the tests
 * concerned are reported as skipped, with the reason; `REQUIRE_ALL=1` makes that a failure.
 */
export const ensureTestPrograms = async () => {
  const missing = programs.filter(({ program }) => !has(program))
  if (missing.length === 0) return
  const names = missing.flatMap(({ debian }) => debian.split(" "))
  if (process.getuid?.() !== 0 || !has("apt-get")) {
    say(`Not on this machine: ${names.join(", ")}; the tests that need them are skipped`)
    return
  }
  say(`Installing for the tests: ${names.join(", ")} …`)
  // RUNLEVEL=1 keeps Debian from starting the service: tests start their own.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" }
  const options = { env, encoding: "utf8" }
  const update = spawnSync("apt-get", ["update", "-q"], options)
  const install = spawnSync("apt-get", ["install", "-yq", "--no-install-recommends", ...names], options)
  if (install.status !== 0) {
    say(`apt-get could not install ${names.join(", ")}; the tests that need them are skipped`)
    process.stderr.write(`${update.stderr}${install.stderr}`)
  }
}
