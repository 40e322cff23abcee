import { mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs"
import { endianness, tmpdir } from "node:os"
import { join } from "node:path"

/**
 * A seccomp program that bubblewrap loads before a command starts. A mount that cannot be written to does not stop
 * connect(2), so a command would reach each Unix socket that its user may open; a filter sees no path, only the family.
 * - `sockets: false`: socket(2) makes IPv4, IPv6 and netlink sockets only, which the empty network namespace holds.
 *   Unix and VM sockets are in no such namespace. socketpair(2) makes streams and packets only: the end of a datagram
 *   pair sends to any address. io_uring_setup(2) is refused, as its requests pass no filter.
 * - `sockets: true`: every socket.
 * In both the kernel's keyrings are closed: a session's keys are shared with the programs that it starts.
 * Sources: seccomp(2), unix(7), vsock(7), io_uring_setup(2), keyrings(7), linux/seccomp.h, linux/bpf_common.h.
 */
export interface SocketFilterOptions {
  readonly sockets: boolean
}

/** System calls of one application binary interface. Sources: linux/audit.h, arch's syscall tables of Linux. */
interface Interface {
  readonly audit: number
  readonly socket: number
  readonly socketpair: number
  /** its arguments are in memory, where no filter sees them */
  readonly socketcall?: number
  /** add_key, request_key, keyctl */
  readonly keys: ReadonlyArray<number>
}

const x86: Interface = {
  audit: 0x4000_0003,
  socket: 359,
  socketpair: 360,
  socketcall: 102,
  keys: [286, 287, 288]
}
const x64: Interface = { audit: 0xc000_003e, socket: 41, socketpair: 53, keys: [248, 249, 250] }
const arm: Interface = {
  audit: 0x4000_0028,
  socket: 281,
  socketpair: 288,
  socketcall: 102,
  keys: [309, 310, 311]
}
const arm64: Interface = { audit: 0xc000_00b7, socket: 198, socketpair: 199, keys: [217, 218, 219] }

/** The interfaces that a kernel of this architecture may offer, by Node's name of it. */
const interfaces: Readonly<Record<string, ReadonlyArray<Interface>>> = {
  x64: [x64, x86],
  arm64: [arm64, arm]
}

/** The same everywhere. */
const ioUringSetup = 425
/** Numbers from here on are of x32, a third interface of x86-64 under the second's name. */
const x32 = 0x4000_0000

const families = { unix: 1, inet: 2, inet6: 10, netlink: 16 }
const stream = 1
const packet = 5
/** SOCK_CLOEXEC and SOCK_NONBLOCK are above. */
const typeMask = 0xf

/** Offsets in struct seccomp_data; of an argument, the low half, which is all that the kernel takes of an int. */
const offsets = { number: 0, audit: 4, first: 16, second: 24 }

const allow = 0x7fff_0000
const errno = 0x0005_0000
const EPERM = 1
/** socket(2): "The implementation does not support the specified address family". No other refusal has these words. */
const EAFNOSUPPORT = 97

/** A jump goes `to` a label, else on to the next instruction. */
interface Instruction {
  readonly code: number
  readonly k: number
  readonly to?: string
}

const load = (offset: number): Instruction => ({ code: 0x20, k: offset })
const and = (k: number): Instruction => ({ code: 0x54, k })
const ifEqual = (k: number, to: string): Instruction => ({ code: 0x15, k, to })
const ifAtLeast = (k: number, to: string): Instruction => ({ code: 0x35, k, to })
const answer = (k: number): Instruction => ({ code: 0x06, k })

type Block = readonly [label: string, ReadonlyArray<Instruction>]

const blockOf = (one: Interface, label: string, { sockets }: SocketFilterOptions): Block => {
  const { audit, keys, socket, socketcall, socketpair } = one
  const refused = [
    ...keys,
    ...(sockets ? [] : [ioUringSetup, ...(socketcall === undefined ? [] : [socketcall])])
  ]
  return [
    label,
    [
      load(offsets.number),
      ...(audit === x64.audit ? [ifAtLeast(x32, "refuse")] : []),
      ...refused.map((number) => ifEqual(number, "refuse")),
      ...(sockets ? [] : [ifEqual(socket, "socket"), ifEqual(socketpair, "pair")]),
      answer(allow)
    ]
  ]
}

const shared: ReadonlyArray<Block> = [
  ["refuse", [answer(errno | EPERM)]],
  [
    "socket",
    [
      load(offsets.first),
      ...[families.inet, families.inet6, families.netlink].map((family) => ifEqual(family, "allow")),
      answer(errno | EAFNOSUPPORT)
    ]
  ],
  ["pair", [load(offsets.first), ifEqual(families.unix, "type"), answer(errno | EAFNOSUPPORT)]],
  [
    "type",
    [
      load(offsets.second),
      and(typeMask),
      ifEqual(stream, "allow"),
      ifEqual(packet, "allow"),
      answer(errno | EAFNOSUPPORT)
    ]
  ],
  ["allow", [answer(allow)]]
]

/** Jumps forward over fewer than 256 instructions, as struct sock_filter has them. */
const assemble = (blocks: ReadonlyArray<Block>): Buffer => {
  const at = new Map<string, number>()
  let length = 0
  for (const [label, instructions] of blocks) {
    at.set(label, length)
    length += instructions.length
  }
  const bytes = Buffer.alloc(length * 8)
  blocks
    .flatMap(([, instructions]) => instructions)
    .forEach(({ code, k, to }, index) => {
      bytes.writeUInt16LE(code, index * 8)
      bytes.writeUInt8(to === undefined ? 0 : (at.get(to) ?? 0) - index - 1, index * 8 + 2)
      bytes.writeUInt32LE(k >>> 0, index * 8 + 4)
    })
  return bytes
}

/** The program; undefined on an architecture whose system calls are not written down here. */
export const socketFilter = (architecture: string, options: SocketFilterOptions): Buffer | undefined => {
  const known = Object.hasOwn(interfaces, architecture) ? interfaces[architecture] : undefined
  if (known === undefined || endianness() !== "LE") return undefined
  const labelled = known.map((one, index) => [one, `interface${index}`] as const)
  const start: Block = [
    "start",
    [
      load(offsets.audit),
      ...labelled.map(([{ audit }, label]) => ifEqual(audit, label)),
      answer(errno | EPERM)
    ]
  ]
  return assemble([start, ...labelled.map(([one, label]) => blockOf(one, label, options)), ...shared])
}

/** A file without a name, so that nothing can write to it. */
const nameless = (program: Buffer): number => {
  const directory = mkdtempSync(join(tmpdir(), "signalbox-filter-"))
  const path = join(directory, "program")
  try {
    writeFileSync(path, program, { mode: 0o600 })
    return openSync(path, "r")
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

const programFor = (sockets: boolean): Buffer => {
  const program = socketFilter(process.arch, { sockets })
  if (program === undefined) throw new RangeError(`There is no socket filter for ${process.arch}`)
  return program
}

const kept = new Map<boolean, number>()

/** Whether there is a program for this machine. */
export const hasSocketFilter = socketFilter(process.arch, { sockets: false }) !== undefined

/**
 * The program in a file that is open at its start, for the caller to close. bubblewrap reads it to its end, and the
 * place in an open file is shared with every process it is handed to, so each command gets it opened anew.
 */
export const openSocketFilter = ({ sockets }: SocketFilterOptions): number => {
  const fd = kept.get(sockets) ?? nameless(programFor(sockets))
  kept.set(sockets, fd)
  return openSync(`/proc/self/fd/${fd}`, "r")
}
