import type { ChannelKind, ChannelOf, ChannelRequest, Notice, Targets } from "./Channel.ts"
import type { ChannelSender, Confirmation, Kind } from "./Kind.ts"
import { discord } from "./Discord.ts"
import { push } from "./PushRequest.ts"
import { slack } from "./Slack.ts"
import { telegram } from "./Telegram.ts"
import { webhook } from "./Webhook.ts"

/** Every kind of channels. Another one is a target in `Targets`, a file of its own, and a line here. */
const kinds: { readonly [K in ChannelKind]: Kind<Targets[K]> } = {
  push,
  webhook,
  slack,
  discord,
  telegram
}

export const kindOf = <K extends ChannelKind>(kind: K): Kind<Targets[K]> => kinds[kind]

/** A notice as the channel's service takes it. Throws where the target is not one that was read. */
export const requestTo = <K extends ChannelKind>(
  { kind, target }: ChannelOf<K>,
  notice: Notice,
  sender: ChannelSender
): ChannelRequest => kindOf<K>(kind).request(target, notice, sender)

/** The request that asks those behind an address for their consent; undefined where the kind needs none. */
export const confirmationTo = <K extends ChannelKind>(
  { kind, target }: ChannelOf<K>,
  confirmation: Confirmation,
  nowMillis: number
): ChannelRequest | undefined => kindOf<K>(kind).confirmation?.(target, confirmation, nowMillis)

/** The host of the channel's service, as its subscriber reads it. */
export const hostOf = <K extends ChannelKind>({ kind, target }: ChannelOf<K>): string =>
  kindOf<K>(kind).hostOf(target)
