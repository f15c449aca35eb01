import path from 'node:path'
import { decisionCases } from './testing/cases.ts'

decisionCases(path.join(import.meta.dirname, '../cases'))
