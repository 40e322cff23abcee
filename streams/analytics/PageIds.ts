import { createHash } from "node:crypto"
import { BoundedCache } from "./BoundedCache.ts"

/** Paths whose numbers are remembered, of up to so many bytes: longer ones are seldom the same. */
const rememberedPaths = 32_768
export const rememberedBytes = 256

/** The bytes of a packed text, without its length. */
const bytesOf = (packed: string): Buffer => {
  let at = 0
  while (packed.charCodeAt(at) >= 128) at++
  return Buffer.from(packed.slice(at + 1), "latin1")
}

const hashOf = (packed: string): string =>
  createHash("md5").update(bytesOf(packed)).digest().toString("latin1", 0, 8)

const remembered = new BoundedCache(rememberedPaths, hashOf)

/**
 * The number by which `visits` knows a packed path: the first 64 bits of its MD5, one byte per character. Any process finds
 * the same one, in whichever order paths come; `pageIdSql` is its other form.
 */
export const pageIdOf = (packed: string): string =>
  packed.length > rememberedBytes ? hashOf(packed) : remembered.get(packed)

/** The same in ClickHouse's words, of an expression that is a text. */
export const pageIdSql = (path: string): string => `reinterpretAsUInt64(MD5(${path}))`
