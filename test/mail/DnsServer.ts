import { createSocket } from "node:dgram"
import { createServer, type Socket } from "node:net"
import { Context, Effect, Layer } from "effect"

const types = { A: 1, MX: 15, TXT: 16 } as const
type Type = keyof typeof types

/** "silent": no answer at all; the others are codes of RFC 1035, 4.1.1 */
export type DnsFault = "silent" | "SERVFAIL" | "REFUSED"
const faultCodes = { SERVFAIL: 2, REFUSED: 5 } as const
const notThere = 3

const nameBytes = (name: string): Buffer =>
  Buffer.concat([
    ...name
      .split(".")
      .filter((label) => label !== "")
      .map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label, "latin1")])),
    Buffer.from([0])
  ])

const uint16 = (...values: ReadonlyArray<number>): Buffer => {
  const bytes = Buffer.alloc(values.length * 2)
  values.forEach((value, place) => bytes.writeUInt16BE(value, place * 2))
  return bytes
}

interface Question {
  readonly id: number
  readonly name: string
  readonly type: number
  /** the question as it came */
  readonly bytes: Buffer
}

const questionOf = (message: Buffer): Question => {
  const labels: Array<string> = []
  let place = 12
  for (let length = message[place] ?? 0; length > 0; length = message[place] ?? 0) {
    labels.push(message.toString("latin1", place + 1, place + 1 + length))
    place += length + 1
  }
  const bytes = message.subarray(12, place + 5)
  return {
    id: message.readUInt16BE(0),
    name: labels.join(".").toLowerCase(),
    type: bytes.readUInt16BE(bytes.length - 4),
    bytes
  }
}

/** A name server of the test on loopback, over UDP and TCP: authoritative for every name. Source: RFC 1035, 4. */
export class DnsServer extends Context.Service<
  DnsServer,
  {
    /** `127.0.0.1:port` */
    readonly address: string
    /** Texts, each as its strings; without one there are none. */
    readonly txt: (name: string, ...texts: ReadonlyArray<string | ReadonlyArray<string>>) => void
    readonly mx: (name: string, ...hosts: ReadonlyArray<readonly [preference: number, host: string]>) => void
    readonly a: (name: string, ...addresses: ReadonlyArray<string>) => void
    /** Lines of a zone file, TXT and MX alone: beside what there is. */
    readonly zone: (...lines: ReadonlyArray<string>) => void
    /** undefined: it answers again */
    readonly fail: (name: string, fault: DnsFault | undefined) => void
    /** Answers over UDP are cut, so that clients ask again over TCP. */
    readonly truncate: (isOn: boolean) => void
    /** as `TXT example.com`, in order */
    readonly questions: Array<string>
  }
>()("signalbox/test/DnsServer") {
  static readonly layer = Layer.effect(
    DnsServer,
    Effect.suspend(() => make)
  )
}

class Zone {
  readonly records = new Map<string, ReadonlyArray<Buffer>>()
  readonly faults = new Map<string, DnsFault>()
  readonly questions: Array<string> = []
  isCut = false

  put(type: Type, name: string, data: ReadonlyArray<Buffer>): void {
    this.records.set(`${types[type]} ${name}`, data)
  }

  add(type: Type, name: string, data: Buffer): void {
    this.put(type, name, [...(this.records.get(`${types[type]} ${name}`) ?? []), data])
  }

  line(line: string): void {
    const [, name = "", type, data = ""] = /^(\S+)\. \d+ IN (TXT|MX) (.+)$/.exec(line) ?? []
    if (type === "TXT")
      this.add("TXT", name, textData(Array.from(data.matchAll(/"([^"\\]*)"/g), ([, string = ""]) => string)))
    else if (type === "MX") {
      const [preference, host = ""] = data.split(" ")
      this.add("MX", name, mxData(Number(preference), host))
    } else throw new Error(`no line of a zone: ${line}`)
  }

  /** undefined: none */
  answer(message: Buffer, isUdp: boolean): Buffer | undefined {
    const { bytes, id, name, type } = questionOf(message)
    this.questions.push(`${Object.entries(types).find(([, code]) => code === type)?.[0] ?? type} ${name}`)
    const fault = this.faults.get(name)
    if (fault === "silent") return undefined
    const isThere = [...this.records].some(([key, data]) => key.endsWith(` ${name}`) && data.length > 0)
    const code = fault === undefined ? (isThere ? 0 : notThere) : faultCodes[fault]
    const isCut = isUdp && this.isCut
    const found = code === 0 && !isCut ? (this.records.get(`${type} ${name}`) ?? []) : []
    const flags = 0x84_00 | (isCut ? 0x02_00 : 0) | 0x00_80 | (message.readUInt16BE(2) & 0x01_00) | code
    return Buffer.concat([
      uint16(id, flags, 1, found.length, 0, 0),
      bytes,
      // 0xC00C: the name of the question.
      ...found.map((data) => Buffer.concat([uint16(0xc0_0c, type, 1, 0, 0, data.length), data]))
    ])
  }
}

const textData = (strings: ReadonlyArray<string>): Buffer =>
  Buffer.concat(
    strings.map((string) => {
      const bytes = Buffer.from(string)
      return Buffer.concat([Buffer.from([bytes.length]), bytes])
    })
  )

const mxData = (preference: number, host: string): Buffer =>
  Buffer.concat([uint16(preference), nameBytes(host)])

/** A message over TCP has its length before it. */
const serveTcp = (zone: Zone, socket: Socket): void => {
  let pending = Buffer.alloc(0)
  socket.on("error", () => socket.destroy())
  socket.on("data", (bytes) => {
    pending = Buffer.concat([pending, bytes])
    while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
      const end = 2 + pending.readUInt16BE(0)
      const answer = zone.answer(pending.subarray(2, end), false)
      if (answer !== undefined) socket.write(Buffer.concat([uint16(answer.length), answer]))
      pending = pending.subarray(end)
    }
  })
}

const listening = (server: ReturnType<typeof createServer>, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once("error", reject)
    server.listen(port, "127.0.0.1", resolve)
  })

const bindOnce = async (zone: Zone) => {
  const sockets = new Set<Socket>()
  const tcp = createServer((socket) => {
    sockets.add(socket)
    serveTcp(zone, socket)
  })
  const udp = createSocket("udp4", (message, { address, port }) => {
    const answer = zone.answer(message, true)
    if (answer !== undefined) udp.send(answer, port, address)
  })
  await listening(tcp, 0)
  const address = tcp.address()
  const port = address !== null && typeof address === "object" ? address.port : 0
  const close = async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise<void>((resolve) => void udp.close(resolve))
    await new Promise<void>((resolve) => void tcp.close(() => resolve()))
  }
  try {
    await new Promise<void>((resolve, reject) => {
      udp.once("error", reject)
      udp.bind(port, "127.0.0.1", resolve)
    })
  } catch (error) {
    await close()
    throw error
  }
  return { port, close }
}

/**
 * The same port of both. UDP takes the port TCP was given, since far fewer are in use there; one
 * that another process has of UDP is left for the next.
 */
const bind = async (zone: Zone, triesLeft = 20): ReturnType<typeof bindOnce> => {
  try {
    return await bindOnce(zone)
  } catch (error) {
    const taken = error instanceof Error && "code" in error && error.code === "EADDRINUSE"
    if (!taken || triesLeft === 0) throw error
    return bind(zone, triesLeft - 1)
  }
}

const make = Effect.gen(function* () {
  const zone = new Zone()
  const { port } = yield* Effect.acquireRelease(
    Effect.promise(() => bind(zone)),
    ({ close }) => Effect.promise(close)
  )
  return DnsServer.of({
    address: `127.0.0.1:${port}`,
    txt: (name, ...texts) =>
      zone.put(
        "TXT",
        name,
        texts.map((text) => textData(typeof text === "string" ? (text.match(/[^]{1,255}/g) ?? [""]) : text))
      ),
    mx: (name, ...hosts) =>
      zone.put(
        "MX",
        name,
        hosts.map(([preference, host]) => mxData(preference, host))
      ),
    a: (name, ...addresses) =>
      zone.put(
        "A",
        name,
        addresses.map((address) => Buffer.from(address.split(".").map(Number)))
      ),
    zone: (...lines) => lines.forEach((line) => zone.line(line)),
    fail: (name, fault) =>
      fault === undefined ? void zone.faults.delete(name) : void zone.faults.set(name, fault),
    truncate: (isOn) => {
      zone.isCut = isOn
    },
    questions: zone.questions
  })
})
