import { spawnSync } from "node:child_process"
import { createServer, type Server } from "node:net"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { findBubblewrap } from "#src/clients/agent/exec/Bubblewrap.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import { codeOf, git, put, withWorkspace, type TestWorkspace } from "./TestWorkspace.ts"

const found = await findBubblewrap("/nonexistent")
const bubblewrap = requirement("bubblewrap", () => ("reason" in found ? found.reason : undefined))
const python = "/usr/bin/python3"
const withPython = requirement("python3", () =>
  bubblewrap.available && spawnSync(python, ["-c", ""]).status === 0
    ? undefined
    : `${python} or bubblewrap is missing`
)

const sandboxed = (
  use: (workspace: TestWorkspace) => Promise<void>,
  network: "ask" | "off" = "ask"
): Promise<void> => withWorkspace(use, { sandbox: "auto", network })

/** A service of this machine, outside of the sandbox, with a socket in the workspace. */
const served = async (root: string, use: (path: string) => Promise<void>): Promise<void> => {
  const path = join(root, "s.sock")
  const server: Server = createServer((socket) => socket.end("served"))
  await new Promise<void>((resolve) => server.listen(path, resolve))
  try {
    await use(path)
  } finally {
    server.close()
  }
}

const connecting = (path: string): string =>
  `node -e 'require("net").connect("${path}").on("data", (d) => console.log(String(d))).on("error", (e) => { console.log(e.message); process.exitCode = 1 })'`

describeWith(bubblewrap, "sockets, from commands", () => {
  it("reach no service by its Unix socket, and tell how the user is asked for it", () =>
    sandboxed(({ root, exec, asked }) =>
      served(root, async (path) => {
        const { exitCode, output } = await exec(connecting(path))
        assert.notInclude(output, "served")
        assert.strictEqual(exitCode, 1)
        assert.match(output, /EAFNOSUPPORT[^]*SIGNALBOX_ASK=sockets/)
        assert.deepStrictEqual(asked, [])
      })
    ))

  it("are an approval of their own, without the network, and come with the network", () =>
    sandboxed((workspace) =>
      served(workspace.root, async (path) => {
        const { exec, run, asked } = workspace
        for (const kind of ["sockets", "network"] as const) {
          const command = `SIGNALBOX_ASK=${kind} ${connecting(path)}`
          workspace.answer = "no"
          assert.strictEqual(codeOf(await run("proc.exec", { command })), "denied")
          assert.deepStrictEqual(asked.at(-1)?.kinds, [kind])
          workspace.answer = "once"
          assert.include((await exec(command)).output, "served")
        }
        const interfaces = await exec("SIGNALBOX_ASK=sockets cat /proc/net/dev")
        assert.notMatch(interfaces.output, /^\s*(eth|en|wl)/m)
      })
    ))

  it("are not asked for where the network is switched off", () =>
    sandboxed(async ({ run, asked }) => {
      assert.strictEqual(codeOf(await run("proc.exec", { command: "SIGNALBOX_ASK=sockets true" })), "denied")
      assert.deepStrictEqual(asked, [])
    }, "off"))

  it("leave ordinary programs as they are: pipes between processes, servers on 127.0.0.1, git, make, compilers", () =>
    sandboxed(async ({ root, exec }) => {
      git(root, "init", "--quiet")
      put(join(root, "child.js"), 'process.on("message", (m) => process.send(m + "!"))')
      put(join(root, "package.json"), '{"scripts":{"test":"node ipc.js && node tcp.js"}}')
      put(
        join(root, "ipc.js"),
        `const child = require("child_process").fork("child.js")
         child.send("told").valueOf()
         child.on("message", (m) => { console.log(m); child.kill() })
         require("os").networkInterfaces()
         console.log(require("child_process").execFileSync("sh", ["-c", "echo from sh"], { encoding: "utf8" }))`
      )
      put(
        join(root, "tcp.js"),
        `const server = require("http").createServer((_, r) => r.end("answered")).listen(0, "127.0.0.1", () =>
           fetch("http://127.0.0.1:" + server.address().port).then((r) => r.text()).then(console.log).then(() => server.close()))`
      )
      put(join(root, "Makefile"), "all:\n\t@echo made\n")
      const { output, exitCode } = await exec("npm test --silent && make -s && git status --short")
      assert.strictEqual(exitCode, 0, output)
      for (const word of ["told!", "from sh", "answered", "made", "?? Makefile"]) assert.include(output, word)
    }))
})

/** Prints `NAME errno`, 0 where it was let through, for every way to a socket or a key of the kernel. */
const ways = `
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def tell(name, call):
    try: call(); print(name, 0)
    except OSError as e: print(name, errno.errorcode[e.errno])
def raw(*args):
    def call():
        if libc.syscall(*args) < 0: raise OSError(ctypes.get_errno(), "")
    return call
arm = os.uname().machine == "aarch64"
for kind in ("SOCK_STREAM", "SOCK_DGRAM", "SOCK_SEQPACKET", "SOCK_RAW"):
    tell("unix " + kind, lambda: socket.socket(socket.AF_UNIX, getattr(socket, kind)))
tell("high bits", raw(198 if arm else 41, ctypes.c_uint64(0x100000001), 1, 0))
for family in (15, 29, 30, 38, 40, 44): tell("family %d" % family, raw(198 if arm else 41, family, 1, 0))
tell("datagram pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
tell("raw pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW))
tell("io_uring", raw(425, 8, ctypes.create_string_buffer(256)))
tell("keyring", raw(219 if arm else 250, 0, -3, 1))
if not arm: tell("x32", raw(0x40000000 + 41, 1, 1, 0))
tell("pair", lambda: socket.socketpair())
tell("packet pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
tell("inet", lambda: socket.socket())
tell("inet6", lambda: socket.socket(socket.AF_INET6))
tell("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
`

describeWith(withPython, "sockets, from commands that go around libraries", () => {
  it("are refused in every family but those of the empty network, by every way there is to one", () =>
    sandboxed(async ({ root, exec }) => {
      put(join(root, "ways.py"), ways)
      const { output } = await exec(`${python} ways.py`)
      const refused = output.split("\n").filter((line) => !line.endsWith(" 0") && !line.startsWith("["))
      const open = output.split("\n").filter((line) => line.endsWith(" 0"))
      assert.deepStrictEqual(open, ["pair 0", "packet pair 0", "inet 0", "inet6 0", "netlink 0"])
      for (const line of refused) assert.match(line, /^$|EAFNOSUPPORT$|EPERM$/)
      const pairs = refused.filter((line) => /pair/.test(line))
      assert.deepStrictEqual(pairs, ["datagram pair EAFNOSUPPORT", "raw pair EAFNOSUPPORT"])
    }))

  it("leave Python, SQLite and its child processes as they are", () =>
    sandboxed(async ({ exec }) => {
      const code = [
        "import sqlite3, subprocess, asyncio, concurrent.futures as f, getpass, socket",
        'print(sqlite3.connect("a.db").execute("select 40 + 2").fetchone()[0])',
        'print(subprocess.run(["echo", "from echo"], capture_output=True, text=True).stdout)',
        'print(asyncio.run(asyncio.sleep(0, "slept")))',
        'print(list(f.ThreadPoolExecutor().map(str.upper, ["threads"])))',
        "print(getpass.getuser() != '', socket.getaddrinfo('127.0.0.1', 80)[0][4])"
      ].join("\n")
      const { output, exitCode } = await exec(`${python} - <<'E'\n${code}\nE`)
      assert.strictEqual(exitCode, 0, output)
      for (const word of ["42", "from echo", "slept", "THREADS"]) assert.include(output, word)
    }))
})
