import * as Layer from "effect/Layer"
import * as RateLimit from "../../src/adapters/memory/RateLimit.js"
import { suite } from "./RateLimit.suite.js"

suite("memory", Layer.fresh(RateLimit.layer))
