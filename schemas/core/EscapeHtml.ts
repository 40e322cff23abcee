const special = /[&<>"]/

/** Text as HTML: for the content of an element, or the value of an attribute in double quotes. */
export const escapeHtml = (text: string): string =>
  special.test(text)
    ? text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")
    : text
