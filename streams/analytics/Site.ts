/** A site as ingest needs it. */
export interface Site {
  readonly id: string
  /** bare: lower case, punycode, without scheme, port and `www.` */
  readonly domain: string
  /** the persistent key of the site's `visitor` identities */
  readonly visitorSecret: Uint8Array
}
