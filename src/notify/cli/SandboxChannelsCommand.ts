import { Console, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { CommandFailed } from "#src/cli/CommandFailed.ts"
import { json } from "#src/cli/Output.ts"
import * as ChannelsSandbox from "../sandbox/ChannelsSandbox.ts"

const words = ({ origin }: ChannelsSandbox.RunningChannelsSandbox): string =>
  [
    `The sandbox of channels is at ${origin}/ and shows there what came; nothing leaves this machine.`,
    `A server uses it when it is started with NOTIFY_SANDBOX=${origin}`,
    "",
    `  curl -s -X POST ${origin}/push/subscriptions    # a browser: its subscription`,
    `  curl -s -X POST ${origin}/webhooks              # a receiver of webhooks: its address`,
    `  curl -s -X POST ${origin}/slack                 # a channel of Slack, as /discord one of Discord: its webhook`,
    `  curl -s ${origin}/telegram/start -d '{"code": "…"}'   # a person in Telegram presses start`,
    `  curl -s ${origin}/inbox                         # what came, decrypted`,
    `  curl -s ${origin}/faults -d '{"status": 503, "times": 2}'`,
    "",
    "Ctrl+C ends it."
  ].join("\n")

export const sandboxChannels = Command.make(
  "sandbox-channels",
  {
    json,
    port: Flag.Int("port").pipe(
      Flag.withDescription("Port on 127.0.0.1; a free one where absent"),
      Flag.withDefault(0)
    )
  },
  Effect.fnUntraced(function* ({ json, port }) {
    const sandbox = yield* Effect.mapError(
      ChannelsSandbox.start({ port }),
      ({ problem }) => new CommandFailed({ problem })
    )
    yield* Console.log(json ? JSON.stringify({ origin: sandbox.origin }, null, 2) : words(sandbox))
    return yield* Effect.never
  }, Effect.scoped)
).pipe(Command.withDescription("Stand in for push services, webhooks and chats, for tests and benches"))
