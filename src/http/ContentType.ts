/** The type of bytes of which nothing is known. */
export const anyBytes = "application/octet-stream"

/** A stored Content-Type is sent again as a header: one line of a plain media type, or that of any bytes. */
export const safeContentType = (contentType: string): string =>
  /^[\w!#$&^.+-]{1,100}\/[\w!#$&^.+-]{1,100}(\s*;\s*[\w!#$&^.+-]{1,100}=("[\w !#$&^.+,:-]{0,100}"|[\w!#$&^.+-]{1,100})){0,4}$/.test(
    contentType
  )
    ? contentType
    : anyBytes
