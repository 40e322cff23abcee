/** Why an event that was sent is in no figure; counted per site and day, and shown to the site's owner. */
export type DropReason = "bot" | "hostname" | "duplicate" | "rate" | "invalid" | "late"
