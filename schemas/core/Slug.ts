/**
 * A slug from a name: accents and case are dropped, everything else but letters and digits becomes a hyphen. Undefined
 * if nothing is left, as of a name in another script.
 */
export const slugOf = (name: string, lengthMax: number): string | undefined => {
  const slug = name
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, lengthMax)
    .replace(/-+$/, "")
  return slug === "" ? undefined : slug
}
