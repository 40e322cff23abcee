import { constants } from "node:os"
import { assert, describe, it } from "@effect/vitest"
import { socketFilter } from "#src/clients/agent/exec/SocketFilter.ts"

/** A system call as a filter sees it: struct seccomp_data of linux/seccomp.h. */
interface Call {
  readonly audit: number
  readonly number: number
  readonly args?: ReadonlyArray<number | bigint>
}

/** Runs a program as the kernel does, for the instructions that it has; throws at any other, or behind its end. */
const answerOf = (program: Buffer, { audit, number, args = [] }: Call): number => {
  const data = Buffer.alloc(64)
  data.writeUInt32LE(number >>> 0, 0)
  data.writeUInt32LE(audit >>> 0, 4)
  args.forEach((value, index) => data.writeBigUInt64LE(BigInt(value), 16 + 8 * index))
  let accumulator = 0
  for (let at = 0; ; at++) {
    const code = program.readUInt16LE(at * 8)
    const k = program.readUInt32LE(at * 8 + 4)
    const [yes, no] = [program.readUInt8(at * 8 + 2), program.readUInt8(at * 8 + 3)]
    if (code === 0x20) accumulator = data.readUInt32LE(k)
    else if (code === 0x54) accumulator = (accumulator & k) >>> 0
    else if (code === 0x15) at += accumulator === k ? yes : no
    else if (code === 0x35) at += accumulator >= k ? yes : no
    else if (code === 0x06) return k
    else throw new RangeError(`instruction ${code} at ${at}`)
  }
}

const allowed = 0x7fff_0000
const refused = 0x0005_0000 | constants.errno.EPERM
const noFamily = 0x0005_0000 | constants.errno.EAFNOSUPPORT

/** Audit number, then the numbers of socket, socketpair, keyctl, read and socketcall, from the kernel's tables. */
const machines = {
  x64: [
    { audit: 0xc000_003e, socket: 41, pair: 53, keys: [248, 249, 250], read: 0, call: undefined },
    { audit: 0x4000_0003, socket: 359, pair: 360, keys: [286, 287, 288], read: 3, call: 102 }
  ],
  arm64: [
    { audit: 0xc000_00b7, socket: 198, pair: 199, keys: [217, 218, 219], read: 63, call: undefined },
    { audit: 0x4000_0028, socket: 281, pair: 288, keys: [309, 310, 311], read: 3, call: 102 }
  ]
} as const
const architectures = ["x64", "arm64"] as const

const programOf = (architecture: string, sockets: boolean): Buffer => {
  const program = socketFilter(architecture, { sockets })
  assert.isDefined(program, architecture)
  return program
}

describe("the socket filter", () => {
  it("lets no family through but IPv4, IPv6 and netlink, and pairs only of streams and packets", () => {
    for (const architecture of architectures) {
      const program = programOf(architecture, false)
      for (const { audit, call, keys, pair, read, socket } of machines[architecture]) {
        const ask = (number: number, ...args: ReadonlyArray<number | bigint>): number =>
          answerOf(program, { audit, number, args })
        for (let family = 0; family < 64; family++)
          assert.strictEqual(ask(socket, family, 1), [2, 10, 16].includes(family) ? allowed : noFamily)
        assert.strictEqual(ask(socket, 0x1_0000_0001n, 1), noFamily)
        for (const flags of [0, 0x80000, 0x800, 0x80800])
          for (let type = 0; type < 16; type++)
            assert.strictEqual(ask(pair, 1, type | flags), [1, 5].includes(type) ? allowed : noFamily)
        assert.strictEqual(ask(pair, 30, 1), noFamily)
        for (const number of [425, ...keys, ...(call === undefined ? [] : [call])])
          assert.strictEqual(ask(number), refused, `${architecture} ${number}`)
        assert.strictEqual(ask(read), allowed)
      }
    }
  })

  it("lets every family through where sockets are allowed, and opens no keyring", () => {
    for (const architecture of architectures) {
      const program = programOf(architecture, true)
      for (const { audit, keys, pair, read, socket } of machines[architecture]) {
        for (const number of [socket, pair, read, 425])
          assert.strictEqual(answerOf(program, { audit, number, args: [1, 2] }), allowed)
        for (const number of keys) assert.strictEqual(answerOf(program, { audit, number }), refused)
      }
    }
  })

  it("refuses what comes by another interface: x32, and any that it does not know", () => {
    for (const sockets of [false, true]) {
      const program = programOf("x64", sockets)
      for (const number of [0, 41, 250])
        assert.strictEqual(answerOf(program, { audit: 0xc000_003e, number: number + 0x4000_0000 }), refused)
      for (const audit of [0, 0xc000_00b7, 0x4000_0028, 0x8000_0015])
        assert.strictEqual(answerOf(program, { audit, number: 0 }), refused)
    }
  })

  it("is not there for an architecture whose system calls are not known", () => {
    for (const architecture of ["riscv64", "s390x", "ia32", "constructor"])
      assert.isUndefined(socketFilter(architecture, { sockets: false }))
  })
})
