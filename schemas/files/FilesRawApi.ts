import { HttpApi } from "effect/http-api"
import { ArchivesApi } from "./ArchivesApi.ts"
import { DirectApi } from "./DirectApi.ts"
import { SendFilesApi } from "./SendApi.ts"
import { TransfersApi } from "./TransfersApi.ts"
import { UploadsApi } from "./UploadsApi.ts"

/** The endpoints of shared files that are served beside the Effect pipeline. */
export class FilesRawApi extends HttpApi.make("signalbox")
  .add(TransfersApi)
  .add(ArchivesApi)
  .add(UploadsApi)
  .add(SendFilesApi)
  .add(DirectApi) {}
