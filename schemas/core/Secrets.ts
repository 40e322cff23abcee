/** Number of leading characters of a key or secret that stay readable, so that its owner can tell keys apart. */
export const secretPrefixLength = 12
