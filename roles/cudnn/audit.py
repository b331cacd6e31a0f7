"""Values that an audit records about cuDNN."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.roles import AuditValue, RoleContext, Snippet
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.cudnn import Cudnn
from hostwright.standard.roles.cudnn.section import CudnnSection

FILES = Snippet.beside(__file__, "audit.sh", "cudnn")

#: major version of cuDNN → file names of the libraries in that version
LIBRARIES = {
    "8": (
        "libcudnn", "libcudnn_adv_infer", "libcudnn_adv_train", "libcudnn_cnn_infer", "libcudnn_cnn_train",
        "libcudnn_ops_infer", "libcudnn_ops_train",
    )
}  # fmt: skip


def audit_values(v: Cudnn, ctx: RoleContext) -> Iterator[AuditValue]:
    """Yield every library and the header in the toolkit, and a second cuDNN of the same major version."""
    series, version = ctx.section(CudaSection).series, ctx.section(CudnnSection).library_version
    major = version.partition(".")[0]
    for library in LIBRARIES.get(major, ("libcudnn",)):
        yield AuditValue(library, FILES.line(f"{series} {library}.so.{major}"), version)
    yield AuditValue("header", FILES.line(f"header {series}"), version)
    yield AuditValue("strays", FILES.line(f"strays {major}"), "")
