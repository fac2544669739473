import js from '@eslint/js';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

const injectedTime = 'Time is injected: take a Clock (src/runtime has the real one).';
const injectedRandom = 'Randomness is injected: take a random function (src/runtime has the real one).';

const ambient = [
  {
    selector: "CallExpression[callee.object.name='Date'][callee.property.name='now']",
    message: injectedTime,
  },
  { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: injectedTime },
  { selector: "CallExpression[callee.name='Date']", message: injectedTime },
  { selector: "MemberExpression[object.name='performance'][property.name='now']", message: injectedTime },
  { selector: "MemberExpression[object.name='process'][property.name='hrtime']", message: injectedTime },
  { selector: 'CallExpression[callee.name=/^(setTimeout|setInterval)$/]', message: injectedTime },
  { selector: 'ImportDeclaration[source.value=/^(node:)?timers/]', message: injectedTime },
  { selector: "MemberExpression[object.name='Math'][property.name='random']", message: injectedRandom },
];

const environment = {
  selector: "MemberExpression[object.name='process'][property.name='env']",
  message:
    'The environment is read in worker.ts, src/cli/main.ts, src/config/environment.ts and src/config/process-env.ts only; take an option instead.',
};

const onlyTheStore = 'Only src/store talks to MongoDB.';

export default defineConfig(
  // What must not compile is not linted either, nor is what compiles only against the packed package.
  globalIgnores([
    'dist/',
    'coverage/',
    '.chronos/',
    'test/types/rejected/',
    'test/types/merged/',
    'test/fixtures/consumers/types*',
  ]),
  js.configs.recommended,
  {
    files: ['**/*.{js,mjs,cjs}'],
    languageOptions: { globals: { console: 'readonly', process: 'readonly', module: 'writable' } },
  },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', ignoreRestSiblings: true }],
      '@typescript-eslint/no-confusing-void-expression': 'off',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      // Wrong where a field changes during an await, and where a value is not what its type promises.
      '@typescript-eslint/no-unnecessary-condition': 'off',
      '@typescript-eslint/no-unnecessary-type-conversion': 'off',
      // A handler may be a class with nothing but a static method.
      '@typescript-eslint/no-extraneous-class': 'off',
    },
  },
  {
    files: ['src/**/*.ts'],
    rules: { 'no-restricted-syntax': ['error', ...ambient, environment] },
  },
  {
    // exit.ts ends a process that something else keeps alive, in real time.
    files: ['src/runtime/**/*.ts', 'src/process/exit.ts'],
    rules: { 'no-restricted-syntax': ['error', environment] },
  },
  {
    files: ['src/config/environment.ts', 'src/config/process-env.ts', 'src/cli/main.ts'],
    rules: { 'no-restricted-syntax': ['error', ...ambient] },
  },
  {
    files: ['worker.ts', 'src/**/*.ts', 'examples/**/*.ts'],
    ignores: ['src/store/**'],
    rules: {
      'no-restricted-imports': [
        'error',
        { name: 'mongoose', message: onlyTheStore },
        { name: 'mongodb', message: onlyTheStore },
      ],
    },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unused-expressions': 'off',
      '@typescript-eslint/no-empty-function': 'off',
      // Fakes and handlers that have to be async and have nothing to wait for.
      '@typescript-eslint/require-await': 'off',
    },
  },
);
