import * as JSONSchema from "effect/JsonSchema"
import { ConfigFile } from "./ConfigFile.js"

/** The configuration file as JSON Schema (draft 2020-12), pretty-printed. */
export const text: string = JSON.stringify(
  JSONSchema.make(ConfigFile, { target: "jsonSchema2020-12" }),
  null,
  2
)
