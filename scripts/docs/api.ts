import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

// The reference of docs/api.md: every public export with its kind, its TSDoc and its members, from the source itself.

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Longer types of constants are shortened to the names of their properties. */
const MAX_TYPE_LENGTH = 200;
const TYPE_FORMAT: ts.TypeFormatFlags =
  ts.TypeFormatFlags.NoTruncation |
  ts.TypeFormatFlags.UseAliasDefinedOutsideCurrentScope |
  ts.TypeFormatFlags.UseSingleQuotesForStringLiteralType;

/** A module that applications import. */
export interface EntryPoint {
  file: string;
  /** The heading of its exports. Without one, the comments above the exports (`// Jobs`) are the headings. */
  title?: string;
}

const ENTRY_POINTS: readonly EntryPoint[] = [
  { file: 'src/index.ts' },
  { file: 'src/http/server.ts', title: 'chronos-worker/http' },
  { file: 'src/metrics/attach.ts', title: 'chronos-worker/metrics' },
];

interface PublicExport {
  name: string;
  /** The declaration, not the re-export. */
  symbol: ts.Symbol;
  section: string;
  /** `export type { … }`: the class cannot be constructed. */
  isTypeOnly: boolean;
}

/** Throws if an export has no TSDoc comment, with the names of all of them. */
export function apiReference(entryPoints: readonly EntryPoint[] = ENTRY_POINTS, root = ROOT): string {
  const program = createProgram(entryPoints, root);
  const reference = new Reference(program, entryPoints, root);
  const undocumented = reference.exports.filter(({ symbol }) => reference.summary(symbol) === '');
  if (undocumented.length > 0) {
    const names = undocumented.map(({ name, symbol }) => `${name} (${reference.fileOf(symbol)})`);
    throw new Error(`these public exports need a TSDoc comment of one sentence: ${names.join(', ')}`);
  }
  return reference.toMarkdown();
}

function createProgram(entryPoints: readonly EntryPoint[], root: string): ts.Program {
  const { config } = ts.readConfigFile(path.join(ROOT, 'tsconfig.json'), (file) => ts.sys.readFile(file)) as {
    config: object;
  };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
  return ts.createProgram(
    entryPoints.map(({ file }) => path.join(root, file)),
    { ...options, types: ['node'] },
  );
}

class Reference {
  readonly exports: readonly PublicExport[];
  readonly #program: ts.Program;
  readonly #checker: ts.TypeChecker;
  readonly #root: string;
  /** Types that are not exported, but named by those that are. */
  readonly #noticed = new Set<ts.Symbol>();
  readonly #printer = ts.createPrinter({ removeComments: true });

  constructor(program: ts.Program, entryPoints: readonly EntryPoint[], root: string) {
    this.#program = program;
    this.#checker = program.getTypeChecker();
    this.#root = root;
    const found = entryPoints.flatMap((entryPoint) => this.#exportsOf(entryPoint));
    // A type that two entry points export is described once.
    this.exports = found.filter(({ symbol }, index) => found.findIndex((e) => e.symbol === symbol) === index);
  }

  toMarkdown(): string {
    const titles = new Set(this.exports.map(({ section }) => section));
    const sections = [...titles].flatMap((title) => [
      `### ${title}`,
      ...this.exports.filter(({ section }) => section === title).map((found) => this.#describe(found)),
    ]);
    return [...sections, ...this.#describeNoticed()].join('\n\n');
  }

  fileOf(symbol: ts.Symbol): string {
    const [declaration] = symbol.declarations ?? [];
    return declaration === undefined ? '' : path.relative(this.#root, declaration.getSourceFile().fileName);
  }

  /** The first paragraph of the TSDoc comment of a symbol, on one line. */
  summary(symbol: ts.Symbol): string {
    return oneParagraph(ts.displayPartsToString(symbol.getDocumentationComment(this.#checker)));
  }

  #exportsOf({ file, title }: EntryPoint): PublicExport[] {
    const source = this.#program.getSourceFile(path.join(this.#root, file));
    const module = source === undefined ? undefined : this.#checker.getSymbolAtLocation(source);
    if (source === undefined || module === undefined) throw new Error(`${file} is not a module`);
    const positionOf = (symbol: ts.Symbol): number =>
      symbol.declarations?.find((node) => node.getSourceFile() === source)?.getStart() ?? 0;
    return this.#checker
      .getExportsOfModule(module)
      .sort((a, b) => positionOf(a) - positionOf(b))
      .map((symbol) => ({
        name: symbol.name,
        symbol: this.#target(symbol),
        section: title ?? sectionAt(positionOf(symbol), source),
        isTypeOnly: (symbol.declarations ?? []).some(
          (node) => ts.isExportSpecifier(node) && (node.isTypeOnly || node.parent.parent.isTypeOnly),
        ),
      }));
  }

  #describeNoticed(): string[] {
    // Describing a type may notice further ones, which this loop then visits too.
    const described: string[] = [];
    for (const symbol of this.#noticed)
      described.push(this.#describe({ name: symbol.name, symbol, section: '', isTypeOnly: true }));
    if (described.length === 0) return [];
    return ['### Other types', 'Not exported, but named in the types above.', ...described.sort()];
  }

  #describe({ name, symbol, isTypeOnly }: PublicExport): string {
    const nodes = symbol.declarations ?? [];
    const summary = escapeText(this.summary(symbol));
    const lines = (head: string, ...rest: string[]): string =>
      [`#### ${name}`, summary === '' ? `\`${head}\`` : `\`${head}\`: ${summary}`, ...rest].join('\n\n');
    const withCode = (code: string): string =>
      [`#### ${name}`, ...(summary === '' ? [] : [summary]), `\`\`\`ts\n${code}\n\`\`\``].join('\n\n');

    // A class may also be declared as an interface.
    const declared = nodes.find(ts.isClassDeclaration) ?? nodes.find(ts.isInterfaceDeclaration);
    if (declared !== undefined) {
      const isConstructible = ts.isClassDeclaration(declared) && !isTypeOnly;
      const constructors = isConstructible ? declared.members.filter(ts.isConstructorDeclaration) : [];
      return lines(this.#head(declared), ...this.#memberTable(symbol, constructors));
    }
    const alias = nodes.find(ts.isTypeAliasDeclaration);
    if (alias !== undefined) {
      const head = `type ${alias.name.text}${this.#typeParameters(alias)}`;
      const members = this.#isReadAsMembers(symbol, alias) ? this.#memberTable(symbol) : [];
      return members.length > 0
        ? lines(head, ...members)
        : withCode(`${head} =${this.#definition(symbol, alias)}`);
    }
    const functions = withoutImplementation(nodes.filter(ts.isFunctionDeclaration));
    if (functions.length > 0)
      return withCode(functions.map((node) => `function ${this.#signature(name, node)}`).join('\n'));
    const constant = nodes.find(ts.isVariableDeclaration);
    if (constant !== undefined) return withCode(`const ${name}: ${this.#constantType(symbol, constant)}`);
    throw new Error(`${name}: an export of this kind is not supported`);
  }

  /** `class Scheduler<P extends object> extends Base`, without bases that are internal. */
  #head(node: ts.ClassDeclaration | ts.InterfaceDeclaration): string {
    const heritage = (node.heritageClauses ?? []).flatMap((clause) => {
      const bases = clause.types.filter(({ expression }) => !this.#resolveInternal(expression));
      const keyword = clause.token === ts.SyntaxKind.ExtendsKeyword ? 'extends' : 'implements';
      return bases.length === 0 ? [] : [`${keyword} ${bases.map((base) => this.#print(base)).join(', ')}`];
    });
    const kind = ts.isClassDeclaration(node) ? 'class' : 'interface';
    return [`${kind} ${node.name?.text ?? ''}${this.#typeParameters(node)}`, ...heritage].join(' ');
  }

  /** True for an object type that is written as one, or that is derived from a type that a reader cannot look up. */
  #isReadAsMembers(symbol: ts.Symbol, node: ts.TypeAliasDeclaration): boolean {
    if (ts.isTypeLiteralNode(node.type)) return true;
    const type = this.#checker.getDeclaredTypeOfSymbol(symbol);
    // The members of a class are listed there.
    if (((type.getSymbol()?.flags ?? 0) & ts.SymbolFlags.Class) !== 0) return false;
    const isObject =
      (type.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection)) !== 0 &&
      type.getCallSignatures().length + type.getConstructSignatures().length === 0 &&
      type.getProperties().length > 0;
    return isObject && this.#internalTypesIn(node.type).length > 0;
  }

  /** As in the source, or as a list of values if they come from a constant that a reader cannot look up. */
  #definition(symbol: ts.Symbol, { type: node }: ts.TypeAliasDeclaration): string {
    const type = this.#checker.getDeclaredTypeOfSymbol(symbol);
    const constant = /\btypeof (\w+)/.exec(node.getText())?.[1];
    if (type.isUnion() && constant !== undefined && !this.exports.some(({ name }) => name === constant))
      // The compiler's own order depends on unrelated code.
      return ` ${type.types
        .map((part) => this.#typeText(part, node))
        .sort()
        .join(' | ')}`;
    this.#notice(node);
    // With the line break before the first of several lines.
    return node.getFullText().trimEnd();
  }

  #internalTypesIn(node: ts.Node): ts.Symbol[] {
    const own = ts.isTypeReferenceNode(node) ? this.#resolveInternal(node.typeName) : undefined;
    const children: ts.Node[] = [];
    ts.forEachChild(node, (child) => void children.push(child));
    return [...(own ? [own] : []), ...children.flatMap((child) => this.#internalTypesIn(child))];
  }

  /** The type that a name stands for if it is one of this package that is not exported. */
  #resolveInternal(name: ts.Node): ts.Symbol | undefined {
    const found = this.#checker.getSymbolAtLocation(name);
    const symbol = found && this.#target(found);
    if (symbol === undefined || (symbol.flags & ts.SymbolFlags.TypeParameter) !== 0) return undefined;
    return this.#isOurs(symbol) && !this.#isExported(symbol) ? symbol : undefined;
  }

  /** The declaration behind an import or a re-export. */
  #target(symbol: ts.Symbol): ts.Symbol {
    return (symbol.flags & ts.SymbolFlags.Alias) === 0 ? symbol : this.#checker.getAliasedSymbol(symbol);
  }

  #isExported(symbol: ts.Symbol): boolean {
    return this.exports.some((exported) => exported.symbol === symbol);
  }

  /** Remembers the internal types that a printed node names. */
  #notice(node: ts.Node): void {
    for (const symbol of this.#internalTypesIn(node)) this.#noticed.add(symbol);
  }

  #isOurs(symbol: ts.Symbol): boolean {
    const declarations = symbol.declarations ?? [];
    return declarations.some((node) => {
      const file = node.getSourceFile().fileName;
      return file.startsWith(this.#root) && !file.includes('/node_modules/');
    });
  }

  #memberTable(symbol: ts.Symbol, constructors: readonly ts.ConstructorDeclaration[] = []): string[] {
    const type = this.#checker.getDeclaredTypeOfSymbol(symbol);
    const rows = [
      ...withoutImplementation(constructors).map((node) => ({
        signature: this.#signature(`new ${symbol.name}`, node),
        meaning: commentOf(node),
      })),
      ...type
        .getProperties()
        .filter((member) => this.#isOwnMember(member, symbol))
        .flatMap((member) => this.#memberRows(member)),
    ];
    if (rows.length === 0) return [];
    const lines = rows.map(
      ({ signature, meaning }) => `| \`${escapeCell(signature)}\` | ${escapeCell(escapeText(meaning))} |`,
    );
    return [['| member | meaning |', '|---|---|', ...lines].join('\n')];
  }

  /** Members of other exported types and of foreign types are found there. */
  #isOwnMember(member: ts.Symbol, owner: ts.Symbol): boolean {
    const declarations = member.declarations ?? [];
    // Members of some mapped types have no declaration.
    if (declarations.length > 0 && (!this.#isOurs(member) || declarations.some(isHidden))) return false;
    if ((owner.flags & ts.SymbolFlags.TypeAlias) !== 0) return true;
    return !declarations.some(({ parent }) => {
      const name = ts.getNameOfDeclaration(parent as ts.Declaration);
      const declaredIn = name && this.#checker.getSymbolAtLocation(name);
      return declaredIn !== undefined && declaredIn !== owner && this.#isExported(declaredIn);
    });
  }

  #memberRows(member: ts.Symbol): { signature: string; meaning: string }[] {
    const declarations = member.declarations ?? [];
    const methods = withoutImplementation(
      declarations.filter((node) => ts.isMethodDeclaration(node) || ts.isMethodSignature(node)),
    );
    if (methods.length > 0)
      return methods.map((node) => ({
        signature: this.#signature(memberName(member), node),
        meaning: commentOf(node),
      }));
    const isOptional = (member.flags & ts.SymbolFlags.Optional) !== 0;
    const isReadonly = declarations.some(
      (node) =>
        ts.isGetAccessorDeclaration(node) ||
        (ts.getCombinedModifierFlags(node) & ts.ModifierFlags.Readonly) !== 0,
    );
    return [
      {
        signature: `${isReadonly ? 'readonly ' : ''}${memberName(member)}${isOptional ? '?' : ''}: ${this.#memberType(member)}`,
        meaning: this.summary(member),
      },
    ];
  }

  #memberType(member: ts.Symbol): string {
    const [node] = member.declarations ?? [];
    const isDeclared =
      node !== undefined &&
      (ts.isPropertySignature(node) || ts.isPropertyDeclaration(node) || ts.isGetAccessorDeclaration(node));
    const type = this.#checker.getTypeOfSymbol(member);
    // In a mapped or generic type, a member may have another type than in its declaration.
    if (isDeclared && node.type !== undefined && type === this.#checker.getTypeAtLocation(node))
      return this.#print(node.type);
    return this.#typeText(type, node);
  }

  #signature(name: string, node: ts.SignatureDeclaration): string {
    const parameters = node.parameters.map((parameter, index) => {
      const plain = ts.isIdentifier(parameter.name) ? parameter.name.text : `arg${index}`;
      const rest = parameter.dotDotDotToken === undefined ? '' : '...';
      const type = parameter.type
        ? this.#print(parameter.type)
        : this.#typeText(this.#checker.getTypeAtLocation(parameter), parameter);
      const isOptional = parameter.questionToken !== undefined || parameter.initializer !== undefined;
      return `${rest}${plain}${isOptional ? '?' : ''}: ${type}`;
    });
    const head = `${name}${this.#typeParameters(node)}(${parameters.join(', ')})`;
    if (ts.isConstructorDeclaration(node)) return head;
    if (node.type !== undefined) return `${head}: ${this.#print(node.type)}`;
    const result = this.#checker.getSignatureFromDeclaration(node)?.getReturnType();
    return result === undefined ? head : `${head}: ${this.#typeText(result, node)}`;
  }

  /** For types that no node declares. */
  #typeText(type: ts.Type, at: ts.Node | undefined): string {
    return this.#checker.typeToString(type, at, TYPE_FORMAT);
  }

  #typeParameters(node: { typeParameters?: ts.NodeArray<ts.TypeParameterDeclaration> | undefined }): string {
    const parameters = (node.typeParameters ?? []).map((parameter) => this.#print(parameter));
    return parameters.length === 0 ? '' : `<${parameters.join(', ')}>`;
  }

  #constantType(symbol: ts.Symbol, node: ts.VariableDeclaration): string {
    if (node.type !== undefined) return this.#print(node.type);
    const type = this.#checker.getTypeOfSymbol(symbol);
    const text = this.#typeText(type, node);
    if (text.length <= MAX_TYPE_LENGTH) return text;
    return `{ ${type.getProperties().map(memberName).join(', ')} }`;
  }

  /** On one line and without comments. */
  #print(node: ts.Node): string {
    this.#notice(node);
    const text = this.#printer.printNode(ts.EmitHint.Unspecified, node, node.getSourceFile());
    return text.replace(/\s+/g, ' ').replace(/;? }/g, ' }');
  }
}

/** The last comment such as `// Jobs` before a position. A comment that ends with a period is no heading. */
function sectionAt(position: number, source: ts.SourceFile): string {
  const before = source.text.slice(0, position);
  const title = [...before.matchAll(/^\/\/ (.*[^.\n])$/gm)].at(-1)?.[1];
  if (title === undefined)
    throw new Error(`${source.fileName}: the first export needs a comment such as "// Jobs" above it`);
  return title;
}

/** Overloads are public, the implementation behind them is not. */
function withoutImplementation<N extends ts.SignatureDeclaration>(nodes: readonly N[]): readonly N[] {
  return nodes.length > 1 ? nodes.filter((node) => !('body' in node) || node.body === undefined) : nodes;
}

/** Private members, and those that only this library can name: their key is a symbol of its own. */
function isHidden(node: ts.Declaration): boolean {
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  if ((ts.getCombinedModifierFlags(node) & hidden) !== 0) return true;
  const name = ts.getNameOfDeclaration(node);
  if (name === undefined) return false;
  return (
    ts.isPrivateIdentifier(name) ||
    (ts.isComputedPropertyName(name) && !name.getText().startsWith('[Symbol.'))
  );
}

function memberName(member: ts.Symbol): string {
  const [declaration] = member.declarations ?? [];
  const name = declaration && ts.getNameOfDeclaration(declaration);
  if (name !== undefined && ts.isComputedPropertyName(name)) return name.getText();
  return /^[\w$]+$/.test(member.name) ? member.name : `'${member.name}'`;
}

function commentOf(node: ts.Node): string {
  const [comment] = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc);
  return oneParagraph(ts.getTextOfJSDocComment(comment?.comment) ?? '');
}

function oneParagraph(text: string): string {
  const [first = ''] = text.split(/\n\s*\n/);
  return first
    .replace(/\{@link\s+([^}]+?)\s*\}/g, '`$1`')
    .replace(/\s+/g, ' ')
    .trim();
}

/** Markdown would take `<job>` outside of code for HTML. */
function escapeText(text: string): string {
  return text
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith('`') ? part : part.replaceAll('<', '&lt;')))
    .join('');
}

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|');
}
