import { readFileSync } from "node:fs"

/** The kernel's memory of the whole machine (proc(5)); NaN where there is no such file. */

const pageBytes = 4096

const textOf = (file: string): string => (process.platform === "linux" ? readFileSync(file, "latin1") : "")

/** Its own objects, those of sockets among them. */
export const slabBytes = (): number => Number(/^Slab:\s+(\d+) kB/m.exec(textOf("/proc/meminfo"))?.[1]) * 1024

/** The bytes waiting in buffers of TCP. */
export const tcpBufferBytes = (): number =>
  Number(/^TCP:.* mem (\d+)/m.exec(textOf("/proc/net/sockstat"))?.[1]) * pageBytes
