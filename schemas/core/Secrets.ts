/** How many leading characters of a key or secret are kept readable, so that its owner can tell keys apart. */
export const secretPrefixLength = 12
