"""The classes of Hive that its serialised expressions hold, with their fields in the order in which Kryo writes them: by name.

A field is a primitive, "object" when its class is written before it, or the name of its class when that is final. Static and transient
fields are not written. Source: Hive 3.1.3 and 4.0.1, reflected; `children` is spelled `chidren` before 4.0, at the same place.
"""

from __future__ import annotations

PREFIX = "org.apache.hadoop."
"""The beginning of the names of Hive's classes, which is left out here."""

_UDF = "hive.ql.udf.generic.GenericUDF"
_TYPES = "hive.serde2.typeinfo."
_INSPECTORS = "hive.serde2.objectinspector.primitive."

FUNCTION = "hive.ql.plan.ExprNodeGenericFuncDesc"
COLUMN = "hive.ql.plan.ExprNodeColumnDesc"
CONSTANT = "hive.ql.plan.ExprNodeConstantDesc"
REGISTERED_LIST = "java.util.Arrays$ArrayList"
COMPARE_TYPE = _UDF + "BaseCompare$CompareType"

REGISTERED = {0: "int", 1: "String", 2: "float", 3: "boolean", 4: "byte", 5: "char", 6: "short", 7: "long", 8: "double"}
"""The classes that have numbers instead of names."""
ENUM = frozenset((COMPARE_TYPE,))
LISTS = frozenset(("java.util.ArrayList", "java.util.LinkedList"))

_ALIASES = {f"[L{PREFIX}hive.serde2.objectinspector.ObjectInspector;": "array"}


def full_name(name: str) -> str:
    """Return the name that a class has here. Guava's lists, whose packages differ between releases, are lists."""
    if name.endswith("$RandomAccessWrappedList"):
        return "java.util.ArrayList"
    return _ALIASES.get(name) or name.removeprefix(PREFIX)


def _fields(text: str) -> tuple[tuple[str, str], ...]:
    """Read the fields of a class: `name` for an object, `name:class` for any other."""
    return tuple((name, code or "object") for name, _, code in (part.partition(":") for part in text.split()))


def _result(names: str, field: str = "result") -> dict[str, str]:
    return {_UDF + name: field for name in names.split()}


_TEXT: dict[str, str] = {
    FUNCTION: "children genericUDF isSortedExpr:boolean typeInfo",
    COLUMN: "column:String isPartitionColOrVirtualCol:boolean isSkewedCol:boolean tabAlias:String typeInfo",
    CONSTANT: "typeInfo value",
    _TYPES + "PrimitiveTypeInfo": "typeName:String",
    _TYPES + "DecimalTypeInfo": "precision:int scale:int typeName:String",
    _TYPES + "VarcharTypeInfo": "length:int typeName:String",
    _TYPES + "CharTypeInfo": "length:int typeName:String",
    _TYPES + "StructTypeInfo": "allStructFieldNames:texts allStructFieldTypeInfos",
    _TYPES + "ListTypeInfo": "listElementTypeInfo",
    **{f"hive.common.type.{name}": "value:String" for name in ("HiveVarchar", "HiveChar")},
    "hive.common.type.HiveDecimal": (
        "fast0:long fast1:long fast2:long fastIntegerDigitCount:int fastScale:int fastSerializationScale:int fastSignum:int"
    ),
    "hive.common.type.Date": "localDate:LocalDate",
    "hive.common.type.Timestamp": "localDateTime:LocalDateTime",
    "io.BooleanWritable": "value:boolean",
    "io.IntWritable": "value:int",
    "io.LongWritable": "value:long",
    "io.FloatWritable": "value:float",
    "io.Text": "bytes:byte[] length:int",
    "hive.serde2.io.DoubleWritable": "value:double",
    "hive.serde2.io.ByteWritable": "value:byte",
    "hive.serde2.io.ShortWritable": "value:short",
    "hive.serde2.io.DateWritableV2": "date",
    "hive.serde2.io.TimestampWritableV2": (
        "bytesEmpty:boolean currentBytes:byte[] externalBytes:byte[] internalBytes:byte[] offset:int timestamp timestampEmpty:boolean"
    ),
    "hive.serde2.io.HiveDecimalWritable": (
        "fast0:long fast1:long fast2:long fastIntegerDigitCount:int fastScale:int fastSerializationScale:int fastSignum:int "
        "internalScratchBuffer:byte[] internalScratchLongs:long[] isSet:boolean"
    ),
    **{f"hive.serde2.io.{name}": "charLength:int value" for name in ("HiveVarcharWritable", "HiveCharWritable")},
    **{
        f"{_INSPECTORS}{kind}{name}ObjectInspector": "typeInfo value" if kind == "WritableConstant" else "typeInfo"
        for kind in ("Java", "Writable", "WritableConstant")
        for name in (
            "Boolean",
            "Byte",
            "Short",
            "Int",
            "Long",
            "Float",
            "Double",
            "String",
            "Date",
            "Timestamp",
            "HiveVarchar",
            "HiveChar",
            "HiveDecimal",
        )
    },
    f"{_INSPECTORS}WritableConstantHiveDecimalObjectInspector": "typeInfo value:hive.serde2.io.HiveDecimalWritable",
    "hive.serde2.objectinspector.ObjectInspectorConverters$IdentityConverter": "",
    **{
        f"{_UDF}OP{name}": f"compareOI compareType:{COMPARE_TYPE} opDisplayName:String opName:String result"
        for name in (
            "Equal",
            "EqualNS",
            "NotEqual",
            "NotEqualNS",
            "LessThan",
            "EqualOrLessThan",
            "GreaterThan",
            "EqualOrGreaterThan",
        )
    },
    _UDF + "Between": "argumentOIs egt elt result",
    _UDF + "In": "bw isInSetConstant:boolean",
    _UDF + "Bridge": "isOperator:boolean udfClassName:String udfName:String",
    _UDF + "Timestamp": "intToTimestampInSeconds:boolean",
    _UDF + "RegExp": "output useGoogleRegexEngine:boolean",
    _UDF + "FromUnixTime": "",
    **_result("OPAnd OPOr OPNot OPNull OPNotNull Length CharacterLength OctetLength ArrayContains", "result"),
    **_result("Instr", "intWritable"),
    **_result("ConcatWS", "resultText"),
    **_result("OPTrue OPFalse OPNotTrue OPNotFalse", "conditionConverter result"),
    **_result("Trim LTrim RTrim", "result udfName:String"),
    **_result("InitCap Sha2 SubstringIndex Soundex Levenshtein", "output"),
    **_result("ToDecimal ToVarchar ToChar", "typeInfo"),
    **_result("ToDate ToString ToBinary Date Struct NamedStruct Upper Lower Concat", ""),
    **_result("Coalesce Nvl If When Case Nullif Greatest Least Elt", ""),
    **_result("DateAdd DateSub", "output signModifier:int"),
}

FIELDS = {name: _fields(text) for name, text in _TEXT.items()}
OF_KRYO_3 = {
    **{f"hive.serde2.io.{name}": _fields("value") for name in ("HiveVarcharWritable", "HiveCharWritable")},
    _UDF + "RegExp": _fields("output"),
}
"""Classes that differ in Hive 3.1."""
