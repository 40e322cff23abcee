import { Effect } from "effect"
import PostalMime from "postal-mime"
import { ServiceUnavailable } from "#schemas/core/Problem.ts"
import { escapeHtml } from "#schemas/core/EscapeHtml.ts"
import type { JobKind } from "#src/infra/workers/Job.ts"
import type { Workers } from "#src/infra/workers/Workers.ts"

/** Longer mails are taken apart in a thread: base64 of 25 MiB takes a while. */
const inPlaceBytes = 256 * 1024

const kind: JobKind = {
  module: new URL("./InboxPageThread.ts", import.meta.url),
  isolation: "thread",
  deadlineMillis: 20_000,
  memoryMegabytes: 512
}

const unread = ServiceUnavailable.of("Too many large mails are being read; try again")

/** The HTML of a composed mail; undefined: it has none. */
export const htmlOf = async (message: Uint8Array): Promise<string | undefined> =>
  (await PostalMime.parse(message)).html

/** The same, off the main thread where the mail is long. */
export const readHtml = (
  workers: Workers["Service"],
  owner: string,
  message: Uint8Array
): Effect.Effect<string | undefined, ServiceUnavailable> => {
  if (message.length <= inPlaceBytes) return Effect.promise(() => htmlOf(message))
  const bytes = new Uint8Array(message)
  return workers.run({ kind, owner, ask: bytes, transfer: [bytes.buffer] }).pipe(
    Effect.tapError((failure) => Effect.logWarning("A large mail could not be read", failure)),
    Effect.mapBoth({
      onFailure: () => unread,
      // InboxPageThread.ts answers with a text, or nothing.
      onSuccess: (answer) => answer as string | undefined
    })
  )
}

/**
 * Nothing in it runs, loads, or leaves the frame: scripts and forms are off, images are those in the mail itself, and
 * there is no source for frames. Source: contract/mail#sandbox.
 */
export const inboxPageHeaders = {
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox",
  "cache-control": "private, no-store",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-dns-prefetch-control": "off"
}

/**
 * No policy stops the connections that a browser makes ahead: for frames, `preconnect`, and links that are pressed. By them
 * a mail would tell that it is read. Names of elements and attributes have one form in HTML, but for their case.
 */
const withoutWaysOut = (html: string): string =>
  html.replaceAll(/href(?=\s*=)/gi, "data-href").replaceAll(/<(?=i?frame[\s/>])/gi, "<x-")

/** Behind the doctype, which has to stay first. A rule of the mail goes before it. */
const linkStyle = "<style>:where(a[data-href]){color:#00e;text-decoration:underline}</style>"

const framed = (html: string): string =>
  withoutWaysOut(html).replace(/^(?:\s*<!doctype[^>]*>)?/i, (doctype) => `${doctype}${linkStyle}`)

/** The mail is in a frame of this page, so that the page's policy says where that frame goes: nowhere. */
export const inboxPage = (html: string): string =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>HTML of a mail</title>` +
  `<style>iframe{position:fixed;inset:0;width:100%;height:100%;border:0;background:#fff}</style>` +
  `<iframe sandbox title="HTML of a mail" srcdoc="${escapeHtml(framed(html))}"></iframe></html>`
