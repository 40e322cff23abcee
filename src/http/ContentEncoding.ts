import { brotliCompressSync, constants, gzipSync } from "node:zlib"

/** The encoding of a body. Source: RFC 9110, 8.4. */
export type Encoding = "br" | "gzip" | "identity"

/** A body that is sent often and made once, in every encoding, as small as they get. */
export type EncodedBody = Readonly<Record<Encoding, Uint8Array>>

export const encodedBody = (content: Uint8Array): EncodedBody => ({
  identity: content,
  gzip: gzipSync(content, { level: constants.Z_BEST_COMPRESSION }),
  br: brotliCompressSync(content, {
    params: {
      [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
      [constants.BROTLI_PARAM_SIZE_HINT]: content.length
    }
  })
})

/**
 * The smallest encoding that the caller takes: one that is named, or covered by `*`, without `q=0`. Other weights are
 * not compared; a caller that takes both gets the smaller. Source: RFC 9110, 12.5.3.
 */
export const encodingFor = (acceptEncoding: string | undefined): Encoding => {
  const taken = new Map<string, boolean>()
  for (const part of (acceptEncoding ?? "").toLowerCase().split(",")) {
    const [name = "", ...parameters] = part.split(";").map((piece) => piece.trim())
    taken.set(name, !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter)))
  }
  const isTaken = (name: string): boolean => taken.get(name) ?? taken.get("*") ?? false
  return isTaken("br") ? "br" : isTaken("gzip") ? "gzip" : "identity"
}
