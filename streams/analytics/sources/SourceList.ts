/**
 * Places that visitors come from, by name. With each, between spaces: its domains, of which all sub-domains are part
 * (`google.*` stands for .com and the endings of all countries); its Android apps, as their referrers say it; and words
 * that campaigns use for it as `utm_source`, other than the name itself.
 */
export type SourceList = Readonly<Record<string, string>>
