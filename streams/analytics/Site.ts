/** A site as ingest needs it. */
export interface Site {
  /** the name of its statistics in logs and stores: its id, and after a reset `<id>~<number of resets>` */
  readonly dataset: string
  /** bare: lower case, punycode, without scheme, port and `www.` */
  readonly domain: string
  /** the persistent key of the site's `visitor` identities */
  readonly visitorSecret: Uint8Array
  /** UTC days before today that it keeps; null: all */
  readonly retentionDays: number | null
}

/** The id of the site that a dataset is of. */
export const siteOfDataset = (dataset: string): string => {
  const end = dataset.indexOf("~")
  return end < 0 ? dataset : dataset.slice(0, end)
}
