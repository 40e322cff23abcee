import { Context, Effect, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import { UserDirectory } from "./Users.ts"

/** The bytes of files that each user may have. Source: contract/accounts#files. */
export class StorageQuotas extends Context.Service<
  StorageQuotas,
  {
    /** the user's own, else `FILES_QUOTA`; null: no limit */
    readonly of: (userId: string) => number | null
  }
>()("signalbox/accounts/StorageQuotas") {
  static readonly layer = Layer.effect(
    StorageQuotas,
    Effect.gen(function* () {
      const { filesQuotaBytes } = yield* AppConfig
      const users = yield* UserDirectory
      return StorageQuotas.of({
        of: (userId) => users.get(userId)?.storage_quota_bytes ?? filesQuotaBytes ?? null
      })
    })
  )
}
