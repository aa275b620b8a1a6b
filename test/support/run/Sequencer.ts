import { relative } from "node:path"
import { BaseSequencer, type TestSpecification } from "vitest/node"
import * as Seconds from "./Seconds.js"

/** The longest file first, so that none is begun when the others are nearly done; the rest as Vitest has it. */
export default class extends BaseSequencer {
  readonly #seconds = Seconds.read()

  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const length = ({ moduleId }: TestSpecification) => this.#seconds[relative(process.cwd(), moduleId)] ?? 0
    return (await super.sort(files)).sort((one, other) => length(other) - length(one))
  }
}
