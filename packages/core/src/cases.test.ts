import path from 'node:path'
import { decisionCases } from '../../testing/src/cases.ts'

decisionCases(path.join(import.meta.dirname, '../cases'))
