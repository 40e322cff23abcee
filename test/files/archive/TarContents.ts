import { gunzipSync } from "node:zlib"

export interface TarMember {
  readonly path: string
  readonly text: string
  readonly modifiedSeconds: number
}

const textOf = (bytes: Buffer): string => bytes.toString("utf8").replace(/\0.*$/s, "")

/** The members of a `.tgz`, in their order; gunzip checks its sums. */
export const membersOf = (bytes: Uint8Array): ReadonlyArray<TarMember> => {
  const tar = gunzipSync(bytes)
  const members: Array<TarMember> = []
  let paxPath: string | undefined
  for (let at = 0; tar[at] !== 0;) {
    const field = (from: number, length: number): string =>
      textOf(tar.subarray(at + from, at + from + length))
    const sizeBytes = Number.parseInt(field(124, 12), 8)
    const text = tar.toString("utf8", at + 512, at + 512 + sizeBytes)
    const prefix = field(345, 155)
    const type = field(156, 1)
    if (type === "x") paxPath = /\d+ path=(.*)\n/.exec(text)?.[1]
    else {
      const path = paxPath ?? (prefix === "" ? field(0, 100) : `${prefix}/${field(0, 100)}`)
      members.push({ path, text, modifiedSeconds: Number.parseInt(field(136, 12), 8) })
      paxPath = undefined
    }
    at += 512 + Math.ceil(sizeBytes / 512) * 512
  }
  return members
}

export const pathsOf = (bytes: Uint8Array): ReadonlyArray<string> => membersOf(bytes).map(({ path }) => path)
