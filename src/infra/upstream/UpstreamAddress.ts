import { Context, type Redacted } from "effect"

/** The upstream router that this process asks: that of `UPSTREAM_URL`, else the built-in sandbox. */
export class UpstreamAddress extends Context.Service<
  UpstreamAddress,
  {
    /** the API's root, without a trailing slash: `https://…/api/v1` */
    readonly url: string
    readonly apiKey: Redacted.Redacted | undefined
    readonly isSandbox: boolean
  }
>()("signalbox/infra/UpstreamAddress") {}
