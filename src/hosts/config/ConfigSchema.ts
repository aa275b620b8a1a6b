import * as Schema from "effect/Schema"
import { ConfigFile } from "./ConfigFile.js"

const { definitions, schema } = Schema.toJsonSchemaDocument(ConfigFile, { onExcessProperty: "error" })

/** The configuration file as JSON Schema (draft 2020-12), pretty-printed. */
export const text: string = JSON.stringify(
  { $schema: "https://json-schema.org/draft/2020-12/schema", $defs: definitions, ...schema },
  null,
  2
)
